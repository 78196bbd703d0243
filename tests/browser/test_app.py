"""The app in real Chromium: a photo is explained, watched and saved, and explained again by the command it shows."""

import re
import shlex
import time

import PIL.Image
import pytest
import torch
from command import run_here
from serving import SMALL, choose, done, explain, fill, give, kept, serving, until
from skimage import data

import repeat_xai as rx

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

WATCH = """() => {
    const shown = () => document.querySelector("#frames iframe:not(.coming)")?.contentDocument;
    const budget = () => shown()?.querySelector(".budget")?.innerText;
    const note = () => states.push([document.querySelector("#status").innerText, budget()]);
    window.states = [];
    const everything = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(note).observe(document.querySelector("#answer"), everything);
}"""


@pytest.fixture(scope="module")
def encoder():
    return rx.load_encoder("torchvision:squeezenet1_1", weights="random", size=64, device="cpu")


@pytest.fixture(scope="module")
def window(chromium):
    """Return one browser window for all users: each page is a user of its own, and scripts are fetched once."""
    permissions = ["clipboard-read", "clipboard-write"]
    with chromium.new_context(accept_downloads=True, reduced_motion="reduce", permissions=permissions) as context:
        yield context


@pytest.fixture(scope="module")
def app(tmp_path_factory, window):
    with serving(tmp_path_factory.mktemp("app"), *SMALL) as running:
        yield running
        late = window.new_page()
        late.goto(running.address)
        late.get_by_role("button", name="chelsea.png").click()
        late.wait_for_selector(".given img")
        late.locator("#explain").click()
        late.get_by_text(" encoder calls").wait_for()
    late.close()  # the server had ended without an error while this page was open and its job was running


@pytest.fixture
def visit(window, app):
    """Open the app as a new user. Whatever the browser complains about, or asks other machines for, fails the test."""
    opened, complaints = [], []

    def check_request(url):
        if not url.startswith((app.address, "data:", "blob:")):
            complaints.append(f"asked for {url}")

    def open_page(*, width=1280):
        page = window.new_page()
        opened.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: check_request(request.url))
        page.goto(app.address)
        page.wait_for_selector("#explain")
        return page

    yield open_page
    for page in opened:
        page.close()
    assert complaints == []


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "my cat.png"
    PIL.Image.fromarray(data.chelsea()[::3, ::3]).save(path)
    return path


def expect_same(one, other):
    for name in ("importance", "uncertainty", "vote_share"):
        assert torch.equal(getattr(one, name), getattr(other, name))


def expect_read(inside, explanation):
    """Point at pixels: the page reads out the values of the explanation."""
    verdict, verdicts_read = explanation.verdict(level=0.95), set()
    picture = inside.locator(".picture")
    box = picture.bounding_box()
    for step in range(24):
        picture.hover(position={"x": box["width"] * (0.3 + step % 6 / 12), "y": box["height"] * (0.2 + step // 6 / 6)})
        place, *values = inside.locator(".reading dd").evaluate_all(
            "all => all.map((value) => value.dataset.value ?? value.innerText)"
        )
        column, row = map(int, place.split(", "))
        for value, name in zip(values, ("importance", "uncertainty", "vote_share"), strict=False):
            assert abs(float(value) - getattr(explanation, name)[row, column]) <= 1e-4
        assert int(values[3]) == verdict[row, column]
        verdicts_read.add(int(values[3]))
    assert len(verdicts_read) > 1


def test_a_photo_is_uploaded_explained_and_saved(visit, encoder, photo, monkeypatch, capsys):
    page = visit()
    give(page, photo)
    page.wait_for_selector(".given img")
    assert "my cat.png" in page.locator("#photo").inner_text()
    fill(page, budget=384, seed=3)
    page.evaluate(WATCH)
    assert page.get_by_role("heading", level=1).inner_text().endswith("?")
    assert page.locator(".guide").is_visible()
    explain(page)
    assert "385 encoder calls" in done(page)
    assert not page.locator(".guide").is_visible()  # the result takes its place
    inside = page.frame_locator("#frames iframe:not(.coming)")
    inside.get_by_text("estimated from 384 masks", exact=True).wait_for()
    states = page.evaluate("window.states")
    assert any(" of 385 encoder calls" in status for status, _ in states)
    previews = [budget for _, budget in states if budget and budget.startswith("preview")]
    masks = {int(re.search(r"(\d+) masks", budget)[1]) for budget in previews}
    assert masks
    assert masks <= {128, 256}

    saved = rx.Explanation.load(kept(page, "my cat.npz"))
    own = rx.Repeat(budget=384)(encoder, rx.load_image(photo, encoder), seed=3)
    expect_same(saved, own)
    assert saved.provenance["method"] == own.provenance["method"]
    with PIL.Image.open(kept(page, "my cat.png")) as panel:
        assert panel.width > 1000
    expect_read(inside, saved)

    page.locator("#snippets button").first.click()
    page.get_by_role("button", name="Copy Command").click()
    page.get_by_role("button", name="Copy Command").get_by_text("Copied").wait_for()
    copied = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert copied[:3] == ["repeat-xai", "explain", "my cat.png"]
    monkeypatch.chdir(photo.parent)
    status, _ = run_here(monkeypatch, capsys, *copied[1:])
    assert status == 0
    expect_same(saved, rx.Explanation.load("results/my cat.npz"))

    page.get_by_role("button", name="Copy Python").click()
    page.get_by_role("button", name="Copy Python").get_by_text("Copied").wait_for()
    exec(page.evaluate("navigator.clipboard.readText()"), {})
    expect_same(saved, rx.Explanation.load("my cat.npz"))


def test_methods_and_encoders_stand_side_by_side(visit, app):
    page = visit()
    page.get_by_role("button", name="coffee.png").click()
    page.wait_for_selector(".given img")
    fill(page, budget=256)
    page.locator("#compare button").first.click()
    choose(page, "other-method", "Saliency")
    page.wait_for_selector("#passes input")
    fill(page, passes=2)
    explain(page)
    assert "261 encoder calls" in done(page)
    inside = page.frame_locator("#frames iframe:not(.coming)")
    inside.locator(".tile").nth(1).wait_for()
    assert inside.locator(".tile .method").all_text_contents() == ["REPEAT", "Saliency"]
    for name in ("coffee-1.npz", "coffee-2.npz"):
        rx.Explanation.load(kept(page, name))
    with PIL.Image.open(kept(page, "coffee.comparison.png")) as picture:
        assert picture.width > 500

    choose(page, "other-method", "The same method")
    choose(page, "other-encoder", "torchvision:squeezenet1_0=random")
    explain(page)
    assert "514 encoder calls" in done(page)
    titles = inside.locator(".tile .method")
    inside.get_by_text("REPEAT · torchvision:squeezenet1_0").wait_for()
    assert titles.first.text_content() == "REPEAT · torchvision:squeezenet1_1"


def test_a_file_that_is_no_photo_or_too_large_is_refused_in_a_line(visit, app, tmp_path):
    page = visit()
    large, text, heavy = tmp_path / "large.png", tmp_path / "text.jpg", tmp_path / "heavy.png"
    PIL.Image.new("L", (10_000, 5_000)).save(large)
    text.write_text("not a photo\n" * 20)
    with heavy.open("wb") as file:
        file.truncate(33 * 2**20)
    for path, words in (
        (large, "large.png: 10000×5000 pixels are more than the 40 million accepted here"),
        (text, "text.jpg: not an image that can be read"),
    ):
        give(page, path)
        page.locator("#photo .note", has_text=path.name).wait_for()
        assert words in page.locator("#photo").inner_text()
    explain(page)
    assert "no photo yet" in done(page, "refused")
    assert not page.locator("#snippet-text").is_visible()
    give(page, heavy)
    page.get_by_text("heavy.png: more than the 32 MB accepted here").wait_for()
    page.get_by_role("button", name="chelsea.png").click()
    page.wait_for_selector(".given img")
    fill(page, masks=0)
    explain(page)
    assert "masks must be" in done(page, "refused")


def test_a_photo_can_be_dropped(visit, photo):
    page = visit()
    script = """([bytes, name]) => {
        const carried = new DataTransfer();
        carried.items.add(new File([Uint8Array.from(bytes)], name));
        const drop = new DragEvent("drop", { dataTransfer: carried, bubbles: true });
        document.querySelector("#upload .upload").dispatchEvent(drop);
    }"""
    page.evaluate(script, [list(photo.read_bytes()), "dropped <b>cat</b>.png"])
    page.wait_for_selector(".given img")
    assert (
        "dropped <b>cat< b>.png" in page.locator("#photo").inner_text()
        or "b>.png" in page.locator("#photo").inner_text()
    )


def test_a_second_user_need_not_wait_for_the_first(visit, encoder, photo):
    first = visit()
    give(first, photo)
    first.wait_for_selector(".given img")
    fill(first, masks=50_000, repeats=1)
    first.get_by_role("radio", name="Exact").check()
    explain(first)
    under_way = first.get_by_text("of 50,001 encoder calls")
    under_way.wait_for()
    before = under_way.inner_text()
    second = visit(width=390)
    give(second, photo)
    second.wait_for_selector(".given img")
    fill(second, budget=256, seed=2)
    explain(second)
    assert "257 encoder calls" in done(second)
    own = rx.Repeat(budget=256)(encoder, rx.load_image(photo, encoder), seed=2)
    expect_same(rx.Explanation.load(kept(second, "my cat.npz")), own)
    first.bring_to_front()
    assert until(lambda: under_way.inner_text() != before)


def expect_idle(app):
    time.sleep(0.5)
    before = app.seconds()
    time.sleep(1)
    assert app.seconds() - before < 0.3


def test_cancelled_work_stops_and_a_closed_page_leaves_neither_work_nor_files(visit, app, photo):
    page = visit()
    give(page, photo)
    page.wait_for_selector(".given img")
    fill(page, masks=3000, repeats=1, size=128)
    page.get_by_role("radio", name="Exact").check()
    explain(page)
    page.get_by_text("of 3,001 encoder calls").wait_for()
    page.click("#cancel")
    assert done(page, "cancelled") == "Cancelled"
    expect_idle(app)
    explain(page)
    page.wait_for_selector("#frames iframe")
    assert {"my cat.png"} < {file.name for file in app.files()}
    page.close()
    assert until(lambda: not {file.suffix for file in app.files()} & {".png", ".html", ".npz"})
    expect_idle(app)


def test_the_page_is_accessible_and_fits_at_every_width_in_light_and_dark(visit, app):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit()
    page.get_by_role("button", name="astronaut.png").click()
    page.wait_for_selector(".given img")
    fill(page, budget=256)
    page.locator("#compare button").first.click()
    explain(page)
    done(page)
    page.wait_for_selector("#frames iframe:not(.coming)")
    page.locator("#snippets button").first.click()
    frame = page.locator("#frames iframe")
    for width, scheme, paper in (
        (1400, "dark", (21, 23, 26)),
        (390, "dark", (21, 23, 26)),
        (1400, "light", (255,) * 3),
    ):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        colour = f"rgb{paper}"
        for body in (page.locator("body"), page.frame_locator("#frames iframe").locator("body")):
            assert until(lambda: body.evaluate("body => getComputedStyle(body).backgroundColor") == colour)  # noqa: B023
        page.wait_for_timeout(400)  # colours fade
        violations = axe.run(page).response["violations"]
        assert [(violation["id"], violation["nodes"][0]["html"][:300]) for violation in violations] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert until(lambda: frame.evaluate("it => it.contentDocument.body.scrollHeight <= it.clientHeight + 1"))
        wider = """() => [...document.querySelectorAll("#app *")].filter((element) => {
            const box = element.getBoundingClientRect();
            return box.width && (box.right > innerWidth + 1 || box.left < -1);
        }).map((element) => element.outerHTML.slice(0, 80))"""
        assert page.evaluate(wider) == []


def test_no_call_to_another_machine(app):
    """Check at the end of this file that in all tests above the server called no other machine."""
    assert app.calls.read_text() == ""
    assert ".ses" not in {file.name for file in app.files()}  # ONNX Runtime's report of its use
