"""The pages of explain and screen are complete, hold no folder of the machine, and run no script in a file name."""

import html as entities
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pages import explanation, saved

import repeat_xai as rx
from repeat_xai.output.page import expect_replaceable_page, images_page, write_explain_page
from repeat_xai.output.results_folder import ImageOutcome
from repeat_xai.types import Explanation

SCRIPT_NAME = """<script>alert(1)<!-- ]]> '"&amp; 100% #1?.png"""


def contents(page):
    texts = re.findall(r'<script type="application/json" id="image-\d+">(.*?)</script>', page.read_text(), re.DOTALL)
    return [json.loads(text) for text in texts]


def test_a_page_is_one_file_that_loads_nothing(tmp_path):
    page = write_explain_page([[saved(explanation(), tmp_path, "cat")]], tmp_path)
    text = page.read_text()
    assert page == tmp_path / "index.html"
    assert re.findall(r"https?://[^ \"']+", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"<(?:link|iframe|object|embed|script[^>]* src)", text) == []
    assert "default-src 'none'" in entities.unescape(text)


@pytest.mark.parametrize("votes", [True, False])
def test_everything_about_an_image_is_on_the_page(tmp_path, votes):
    made = explanation(3, votes=votes)
    (content,) = contents(write_explain_page([[saved(made, tmp_path, "cat", level=0.9)]], tmp_path))
    (shown,) = content["views"]
    names = {"importance", "vote_share", "verdict"} if votes else {"importance", "uncertainty", "certain"}
    assert set(shown["maps"]) == names
    assert shown["layers"][2]["title"] == (
        "verdict at 90 % of the votes" if votes else "importance where U is at most its median"
    )
    assert ["method.base.masks" if votes else "method.masks", "1000"] in shown["provenance"]
    assert ["level", "0.9"] in shown["provenance"]
    assert [link["href"] for link in shown["links"]] == ["cat.png", "cat.npz", "cat.json"]


def test_a_name_that_holds_a_script_is_shown_and_linked_but_not_run(tmp_path):
    scripted = saved(explanation(name=SCRIPT_NAME), tmp_path, SCRIPT_NAME.removesuffix(".png"))
    plain = saved(explanation(1), tmp_path, "cat")
    page = write_explain_page(
        [[scripted, plain, ImageOutcome(Path("x"), error=rx.RepeatError("<img src=x onerror=alert(2)>"))]], tmp_path
    )
    text = page.read_text()
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert contents(page)[0]["name"] == SCRIPT_NAME
    assert f'<span class="name">{entities.escape(SCRIPT_NAME, quote=False)[:20]}' in text
    assert contents(page)[0]["views"][0]["links"][1]["href"].startswith("%3Cscript%3Ealert%281%29%3C%21--%20%5D%5D%3E")


def test_a_name_that_is_not_valid_text(tmp_path):
    odd = saved(explanation(name="bad\udcff.png"), tmp_path, "bad\udcff")
    page = write_explain_page([[odd, saved(explanation(1), tmp_path, "cat")]], tmp_path)
    assert contents(page)[0]["name"] == "bad?.png"
    assert contents(page)[0]["views"][0]["links"][0]["href"] == "bad%FF.png"


def test_images_of_the_same_file_name_are_shown_with_their_folder(tmp_path):
    same = [saved(explanation(i), tmp_path / place, "cat") for i, place in enumerate("ab")]
    assert [content["name"] for content in contents(write_explain_page([same], tmp_path))] == ["a/cat.png", "b/cat.png"]


def test_several_methods_of_an_image_share_one_content_and_a_failure_is_listed(tmp_path):
    repeat, relax = (
        saved(explanation(), tmp_path / "repeat", "cat"),
        saved(explanation(votes=False), tmp_path / "relax", "cat"),
    )
    (tmp_path / "cat.comparison.png").write_bytes(b"")
    page = write_explain_page(
        [[repeat], [relax], [ImageOutcome(Path("cat.png"), error=rx.RepeatError("lime: too few"))]], tmp_path
    )
    (content,) = contents(page)
    assert [shown["title"] for shown in content["views"]] == ["REPEAT", "RELAX"]
    assert content["links"] == [{"label": "All methods (PNG)", "href": "cat.comparison.png"}]
    assert content["views"][1]["links"][1]["href"] == "relax/cat.npz"
    assert "<strong>cat.png</strong>: lime: too few" in page.read_text()


def test_no_page_is_written_if_nothing_could_be_explained(tmp_path):
    assert write_explain_page([[ImageOutcome(Path("a"), error=rx.RepeatError("bad"))]], tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_page_is_never_written_over(tmp_path):
    own = tmp_path / "index.html"
    own.write_text("<title>mine</title>")
    with pytest.raises(rx.errors.OutputError, match="page of your own"):
        write_explain_page([[saved(explanation(), tmp_path, "cat")]], tmp_path)
    assert own.read_text() == "<title>mine</title>"
    own.unlink()
    own.mkdir()
    with pytest.raises(rx.errors.OutputError, match="page of your own"):
        expect_replaceable_page(tmp_path)
    expect_replaceable_page(tmp_path / "nowhere")


def test_an_interrupted_page_leaves_the_previous_one_whole(tmp_path, monkeypatch):
    outcome = saved(explanation(), tmp_path, "cat")
    page = write_explain_page([[outcome]], tmp_path)
    before = page.read_text()
    more = saved(explanation(1), tmp_path, "dog")
    with monkeypatch.context() as broken:
        broken.setattr(images_page, "page_html", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_explain_page([[outcome, more]], tmp_path)
    assert page.read_text() == before
    assert len(list(tmp_path.glob("*index*"))) + len(list(tmp_path.glob(".index*"))) == 1
    assert len(contents(write_explain_page([[outcome, more]], tmp_path))) == 2


def interrupted(_):
    yield "<!doctype html>"
    raise KeyboardInterrupt


def test_cards_beyond_the_largest_number_of_images_lead_to_panels(tmp_path, monkeypatch):
    monkeypatch.setattr(images_page, "MAX_OPENABLE", 2)
    page = write_explain_page([[saved(explanation(i), tmp_path, f"n {i}") for i in range(4)]], tmp_path)
    assert len(contents(page)) == 2
    assert re.findall(r'<a href="([^"]*)">\n', page.read_text()) == ["#image-1", "#image-2", "n%202.png", "n%203.png"]
    assert "The first 2 images open on this page" in page.read_text()


def test_a_missing_provenance_is_an_error_in_one_line(tmp_path):
    outcome = saved(explanation(), tmp_path, "cat")
    outcome.files.provenance.unlink()
    with pytest.raises(rx.errors.OutputError, match=r"cat\.json: cannot be read"):
        write_explain_page([[outcome]], tmp_path)


def test_the_page_holds_no_folder_of_the_machine(tmp_path):
    made = explanation(name=str(tmp_path / "my photos" / "cat.png"))
    encoder = {"name": f"onnx:{tmp_path}/net.onnx", "weights": f"{tmp_path}/my nets/net.safetensors"}
    outcome = saved(replace(made, provenance={**made.provenance, "encoder": encoder}), tmp_path / "out", "cat")
    broken = tmp_path / "my photos" / "dog.png"
    failed = ImageOutcome(broken, error=rx.RepeatError(f"{broken}: is damaged, and so is {tmp_path}/out/dog.npz"))
    text = write_explain_page([[outcome, failed]], tmp_path / "out").read_text()
    for folder in (str(tmp_path), tmp_path.name, "my photos", "my nets"):
        assert folder not in text
    assert "<strong>dog.png</strong>: is damaged, and so is dog.npz" in text
    assert "net.safetensors" in text


def test_each_explanation_is_read_from_disk_once(tmp_path, monkeypatch):
    outcomes = [
        [saved(explanation(i, votes=votes), tmp_path / f"{votes}", f"{i}") for i in range(3)] for votes in (True, False)
    ]
    loaded, load = [], Explanation.load
    monkeypatch.setattr(Explanation, "load", staticmethod(lambda path: loaded.append(path) or load(path)))
    write_explain_page(outcomes, tmp_path)
    assert len(loaded) == len(set(loaded)) == 6


def test_failures_are_folded_away_below_the_results(tmp_path):
    whole = saved(explanation(), tmp_path, "cat")
    assert 'id="failures"' not in write_explain_page([[whole]], tmp_path).read_text()
    failed = ImageOutcome(Path("dog.png"), error=rx.RepeatError("dog.png: is damaged"))
    text = write_explain_page([[whole, failed]], tmp_path).read_text()
    assert text.index('id="view"') < text.index('<details id="failures">')
    assert '<a href="#failures">1 could not be explained</a>' in text
    assert "<strong>dog.png</strong>: is damaged" in text


def test_a_failure_of_several_methods_for_one_reason_is_listed_once(tmp_path):
    failed = ImageOutcome(Path("photos/dog.png"), error=rx.RepeatError("photos/dog.png: is damaged"))
    outcomes = [saved(explanation(), tmp_path, "cat"), failed]
    text = write_explain_page([outcomes, outcomes], tmp_path).read_text()
    assert text.count("<li><strong>dog.png</strong>: is damaged</li>") == 1


def test_the_page_asks_its_question_and_explains_its_words(tmp_path):
    outcomes = [saved(explanation(i), tmp_path, f"{i}", level=0.9) for i in range(2)]
    text = write_explain_page([outcomes], tmp_path).read_text()
    assert "<h1>Which pixels matter to toy, and how sure is that?</h1>" in text
    guide = re.search(r'<details id="guide".*?</details>', text, re.DOTALL)[0]
    assert re.findall("<dt>(.*?)</dt>", guide) == ["Important", "Uncertain", "Certainly", "The dashed frame"]
    assert "at least 90&nbsp;% of the repeats" in guide


def test_a_card_sums_up_its_image(tmp_path):
    made = explanation(3)
    outcomes = [saved(made, tmp_path, "cat"), saved(explanation(1), tmp_path, "dog")]
    text = write_explain_page([outcomes], tmp_path).read_text()
    card = re.search(r"<li data-number.*?</li>", text, re.DOTALL)[0]
    undecided = round(100 * (made.verdict() == 0).double().mean().item())
    assert re.search(rf"\d+\s% certainly important, {undecided}\s% undecided", card)
    assert f"mean uncertainty {made.uncertainty.mean().item():#.4g} of at most 0.25" in card


def test_a_method_without_uncertainty_has_a_page(tmp_path):
    made = explanation(votes=False)
    outcomes = [saved(replace(made, uncertainty=None), tmp_path, name) for name in ("cat", "dog")]
    text = write_explain_page([outcomes], tmp_path).read_text()
    assert "data-uncertainty" not in text.split('<ul id="cards">')[1].split("</ul>")[0]
    assert "no uncertainty" in text
