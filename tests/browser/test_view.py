"""An opened image shows its layers, its scale, and each pixel's values as its npz holds them."""

import json
import random
import re
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest
import torch
from pages import explanation, saved

from repeat_xai.errors import RepeatError
from repeat_xai.output.page import frame, write_explain_page
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.types import Explanation


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a photo whose middle was explained by REPEAT, in a map that is not square."""
    saved(explanation(2, size=(40, 56)), tmp_path, "cat", level=0.9)
    return tmp_path


@pytest.fixture
def page(folder):
    return write_explain_page([[saved(explanation(2, size=(40, 56)), folder, "cat", level=0.9)]], folder)


def readings(tile):
    """Return what the page says of the pixel: texts, and the numbers behind them."""
    terms, descriptions = tile.locator(".reading dt").all_text_contents(), tile.locator(".reading dd")
    words = dict(zip(terms, descriptions.all_text_contents(), strict=True))
    numbers = dict(
        zip(terms, descriptions.evaluate_all("all => all.map(node => Number(node.dataset.value))"), strict=True)
    )
    return words, numbers


def place_of(found, column, row, box):
    """Return where a pixel's centre lies within the picture on the screen."""
    height, width = found.importance.shape
    left, top, right, bottom = found.photo.box
    x = (left + (column + 0.5) / width * (right - left)) / found.photo.size[1]
    y = (top + (row + 0.5) / height * (bottom - top)) / found.photo.size[0]
    return {"x": x * box["width"], "y": y * box["height"]}


def steps(values):
    return (values.max() - values.min()).item() / 65534


def test_pointing_reads_the_values_of_the_npz(show, page, folder):
    opened = show(page)
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    height, width = found.importance.shape
    draw = random.Random(0)
    corners = [(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)]
    for column, row in [*corners, *((draw.randrange(width), draw.randrange(height)) for _ in range(30))]:
        picture.hover(position=place_of(found, column, row, picture.bounding_box()))
        words, numbers = readings(opened.locator(".tile"))
        assert words["input column, row"] == f"{column}, {row}"
        p = found.importance[row, column].item()
        assert abs(numbers["importance"] - p) <= 0.51 * steps(found.importance)
        assert abs(numbers["uncertainty"] - p * (1 - p)) <= 0.51 * steps(found.importance)
        assert numbers["share of votes"] == pytest.approx(found.vote_share[row, column].item(), abs=1e-6)
        assert numbers["verdict"] == found.verdict(0.9)[row, column].item()
        assert float(words["importance"]) == pytest.approx(p, abs=1e-4)


def test_a_method_without_votes_is_read_too(show, tmp_path):
    outcome = saved(explanation(5, votes=False, size=(33, 20)), tmp_path, "cat")
    opened = show(write_explain_page([[outcome]], tmp_path))
    found = Explanation.load(outcome.files.maps)
    picture = opened.locator("canvas.picture")
    certain = found.uncertainty <= found.uncertainty.median()
    for column, row in [(0, 0), (7, 21), (19, 32), (12, 3)]:
        picture.hover(position=place_of(found, column, row, picture.bounding_box()))
        words, numbers = readings(opened.locator(".tile"))
        for name, values in (("importance", found.importance), ("uncertainty", found.uncertainty)):
            assert abs(numbers[name] - values[row, column].item()) <= 0.51 * steps(values)
        assert words["in the more certain half"] == ("yes" if certain[row, column] else "no")


def test_the_mark_lies_on_the_pixel_and_outside_the_frame_nothing_is_read(show, page):
    opened = show(page)
    picture = opened.locator("canvas.picture").bounding_box()
    opened.mouse.move(picture["x"] + picture["width"] / 2, picture["y"] + picture["height"] / 2)
    mark = opened.locator(".mark").bounding_box()
    pixel = 0.9 * picture["height"] / 40
    assert abs(mark["x"] + mark["width"] / 2 - picture["x"] - picture["width"] / 2) < pixel
    assert abs(mark["y"] + mark["height"] / 2 - picture["y"] - picture["height"] / 2) < pixel
    opened.mouse.move(picture["x"] + 2, picture["y"] + 2)
    assert readings(opened.locator(".tile"))[0] == {
        "input column, row": "not seen",
        "importance": "–",
        "uncertainty": "–",
        "share of votes": "–",
        "verdict": "–",
        "photo column, row": "0, 0",
    }


def colour(opened, x, y):
    """Return the colour of the drawn picture at fractions of its width and height."""
    script = """([x, y]) => {
        const canvas = document.querySelector("canvas.picture");
        const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        const place = [x * canvas.width, y * canvas.height].map(Math.floor);
        pen.drawImage(canvas, ...place, 1, 1, 0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }"""
    return opened.evaluate(script, [x, y])


def set_opacity(opened, value):
    opened.locator("#strength").fill(str(value))


def test_layers_have_the_colours_of_the_figures_at_every_opacity(show, tmp_path):
    flat = explanation(0, size=(30, 30), photo=np.full((60, 60, 3), 90, np.uint8), box=(0.0, 0.0, 60.0, 60.0))
    share = torch.zeros(30, 30)
    share[:, 10:20], share[:, 20:] = 0.5, 1.0
    found = replace(flat, importance=share, uncertainty=share * (1 - share), vote_share=share)
    opened = show(write_explain_page([[saved(found, tmp_path, "cat")]], tmp_path))
    set_opacity(opened, 100)
    viridis, magma = ((68, 1, 84), (33, 144, 140), (253, 231, 37)), ((0, 0, 4), (252, 253, 191), (0, 0, 4))
    verdict = ((0, 114, 178), (240, 240, 240), (213, 94, 0))
    for layer, expected in (("importance", viridis), ("uncertainty", magma), ("certainty", verdict)):
        opened.check(f"input[value={layer}]")
        for x, colours in zip((0.15, 0.5, 0.85), expected, strict=True):
            assert colour(opened, x, 0.5) == pytest.approx(colours, abs=2)
    assert opened.locator(".layer-title").text_content() == "verdict at 95 % of the votes"
    set_opacity(opened, 0)
    assert colour(opened, 0.5, 0.5) == pytest.approx((90, 90, 90), abs=3)
    assert opened.locator("#strength-shown").text_content() == "0 %"
    set_opacity(opened, 50)
    assert colour(opened, 0.15, 0.5) == pytest.approx((45, 102, 134), abs=4)


def test_the_scale_has_numbers_and_a_pointer_at_the_pixel(show, page, folder):
    opened = show(page)
    assert opened.locator(".ticks span").all_text_contents() == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    picture.hover(position=place_of(found, 20, 30, picture.bounding_box()))
    left = opened.locator(".pointer").evaluate("node => parseFloat(node.style.left)")
    assert left == pytest.approx(100 * found.importance[30, 20].item(), abs=0.1)


def test_the_histogram_counts_every_pixel_and_shows_the_cuts(show, page, folder):
    opened = show(page)
    opened.check("input[value=certainty]")
    titles = opened.locator(".counts rect title").all_text_contents()
    shares = [float(re.search(r", ([\d.]+) %", title)[1]) for title in titles]
    assert sum(shares) == pytest.approx(100, abs=40 * 0.05)
    votes = Explanation.load(folder / "cat.npz").vote_share
    counts, _ = np.histogram((votes.double() + 1e-7).clamp(max=1).numpy(), 40, (0, 1))
    np.testing.assert_allclose(shares, 100 * counts / votes.numel(), atol=0.06)
    assert opened.locator(".counts .cut + text").all_text_contents() == ["0.1", "0.9"]
    opened.check("input[value=importance]")
    assert opened.locator(".counts .cut").count() == 0


def test_methods_stand_side_by_side_and_are_read_together(show, tmp_path):
    repeat, relax = (explanation(1, votes=votes) for votes in (True, False))
    outcomes = [[saved(repeat, tmp_path / "repeat", "cat")], [saved(relax, tmp_path / "relax", "cat")]]
    opened = show(write_explain_page(outcomes, tmp_path))
    first, second = opened.locator(".tile").all()
    boxes = first.bounding_box(), second.bounding_box()
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert opened.locator("#layers label").last.text_content() == "Verdict / More certain half"
    picture = first.locator("canvas.picture")
    picture.hover(position=place_of(repeat, 30, 9, picture.bounding_box()))
    for tile, found in ((first, repeat), (second, relax)):
        words, numbers = readings(tile)
        assert words["input column, row"] == "30, 9"
        assert abs(numbers["importance"] - found.importance[9, 30].item()) <= 0.51 * steps(found.importance)
    opened.check("input[value=certainty]")
    assert opened.locator(".layer-title").all_text_contents() == [
        "verdict at 95 % of the votes",
        "importance where U is at most its median",
    ]


def test_the_provenance_and_the_files_can_be_reached(show, page, folder, tmp_path):
    opened = show(page)
    assert not opened.locator(".provenance").is_visible()
    opened.locator(".tile summary").click()
    rows = dict(
        zip(
            opened.locator(".provenance th").all_text_contents(),
            opened.locator(".provenance td").all_text_contents(),
            strict=True,
        )
    )
    made = json.loads((folder / "cat.json").read_text())
    assert rows["method.base.masks"] == str(made["method"]["base"]["masks"])
    assert rows["level"] == "0.9"
    for link in opened.locator(".tile .links a").all():
        assert (folder / link.get_attribute("href")).exists()
    with opened.expect_download() as download:
        opened.get_by_role("button", name="This picture (PNG)").click()
    assert download.value.suggested_filename == "cat.importance.png"
    with PIL.Image.open(download.value.path()) as saved:
        width, height = opened.locator("canvas.picture").evaluate("node => [node.width, node.height]")
        assert saved.width > width
        assert saved.height > height
        assert saved.convert("RGB").getpixel((16 + width // 2, 16 + height // 2)) == tuple(colour(opened, 0.5, 0.5))


def test_a_tap_reads_the_pixel(show, page, folder):
    opened = show(page, width=390, height=800, touch=True)
    found = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    picture.tap(position=place_of(found, 10, 20, picture.bounding_box()))
    assert readings(opened.locator(".tile"))[0]["input column, row"] == "10, 20"


def test_a_script_in_a_name_does_not_run(show, tmp_path):
    name = "<script>document.title='evil'<\u200b!-- \" onload='x'.png"
    outcomes = [saved(explanation(i, name=f"{i}{name}"), tmp_path, f"{i}") for i in range(2)]
    opened = show(write_explain_page([outcomes], tmp_path))
    assert opened.locator("#view-title").text_content() == f"0{name}"
    assert opened.locator("#cards .name").all_text_contents() == [f"0{name}", f"1{name}"]
    assert "evil" not in opened.title()


def test_a_notebook_shows_the_page_in_a_frame(show, tmp_path):
    found = explanation(4)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f'<!doctype html><html data-ready="1"><body>{frame(found)}</body></html>', encoding="utf-8")
    opened = show(notebook)
    inside = opened.frame_locator("iframe")
    picture = inside.locator("canvas.picture")
    picture.hover(position=place_of(found, 5, 40, picture.bounding_box()))
    words, numbers = readings(inside.locator(".tile"))
    assert words["input column, row"] == "5, 40"
    assert abs(numbers["importance"] - found.importance[40, 5].item()) <= 0.51 * steps(found.importance)
    assert inside.locator("a").count() == 0


def test_a_pixel_has_coordinates_of_the_input_and_of_the_photo(show, page, folder):
    opened = show(page)
    made = Explanation.load(folder / "cat.npz")
    picture = opened.locator("canvas.picture")
    left, top, right, bottom = made.photo.box
    for column, row in [(0, 0), (55, 39), (20, 7)]:
        picture.hover(position=place_of(made, column, row, picture.bounding_box()))
        words, _ = readings(opened.locator(".tile"))
        across, down = (left + (column + 0.5) / 56 * (right - left), top + (row + 0.5) / 40 * (bottom - top))
        assert words["photo column, row"] == f"{int(across)}, {int(down)}"


def test_uncertainty_of_votes_is_read_with_its_maximum(show, page):
    words, _ = readings(show(page).locator(".tile"))
    assert re.fullmatch(r"0\.\d{4} of at most 0\.25", words["uncertainty"])


def test_the_histogram_has_counts_on_its_axis(show, page):
    opened = show(page)
    bars = opened.locator(".counts rect")
    counts = [int(re.search(r": (\d+) pixels", title)[1]) for title in bars.locator("title").all_text_contents()]
    assert sum(counts) == 40 * 56
    tallest = bars.nth(counts.index(max(counts)))
    per_pixel = float(tallest.get_attribute("height")) / max(counts)
    texts, lines = opened.locator(".counts .count").all_text_contents(), opened.locator(".counts .grid").all()
    assert len(texts) >= 2
    for text, line in zip(texts, lines, strict=True):
        assert 90 - float(line.get_attribute("y1")) == pytest.approx(int(text.replace(",", "")) * per_pixel, abs=0.01)


def test_the_summary_stands_above_the_picture(show, page, folder):
    opened = show(page)
    verdict = Explanation.load(folder / "cat.npz").verdict(0.9)
    text = opened.locator(".summary").text_content()
    shares = [round(100 * (verdict == value).double().mean().item()) for value in (1, 0, -1)]
    assert [int(number) for number in re.findall(r"(\d+)\s%", text)] == shares


def test_a_method_without_uncertainty_can_be_looked_into(show, tmp_path):
    made = explanation(votes=False)
    unknown = replace(made, uncertainty=None)
    outcomes = [[saved(replace(unknown), tmp_path, f"{i}") for i in range(9)]]
    opened = show(write_explain_page(outcomes, tmp_path))
    assert readings(opened.locator(".tile"))[0]["uncertainty"] == "none"
    assert opened.locator("#least-uncertainty").count() == 0
    opened.check("input[value=uncertainty]")
    assert "does not say how uncertain" in opened.locator(".layer-note").text_content()
    assert not opened.locator(".colours").is_visible()
    assert opened.locator(".counts svg").count() == 0
    opened.check("input[value=certainty]")
    opened.select_option("#order", "-name")
    assert opened.locator("#cards li:not([hidden])").count() == 9


def test_the_link_to_the_failures_unfolds_them_and_leaves_the_image_open(show, tmp_path):
    failed = ImageOutcome(tmp_path / "dog.png", error=RepeatError("dog.png: is damaged"))
    outcomes = [saved(explanation(i), tmp_path, f"{i}") for i in range(2)]
    opened = show(write_explain_page([[*outcomes, failed]], tmp_path), anchor="#image-2")
    title = opened.locator("#view-title").text_content()
    assert not opened.locator("#failures li").is_visible()
    opened.get_by_role("link", name="1 could not be explained").click()
    opened.locator("#failures li", has_text="dog.png: is damaged").wait_for()
    assert opened.locator("#view-title").text_content() == title


@pytest.mark.parametrize(("width", "is_open"), [(1280, True), (390, False)])
def test_the_guide_is_folded_where_it_would_push_the_image_off_the_screen(show, page, width, is_open):
    assert show(page, width=width).locator("#guide").evaluate("guide => guide.open") == is_open
