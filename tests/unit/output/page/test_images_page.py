"""The page in a folder: whole, ours, of what lies there, and safe whatever images are called."""

import html as entities
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pages import explanation, hung

import repeat_xai as rx
from repeat_xai.output.page import expect_free, explained
from repeat_xai.output.page import images_page as folder
from repeat_xai.output.page.view import view
from repeat_xai.output.results_folder import ImageOutcome

EVIL = """<script>alert(1)<!-- ]]> '"&amp; 100% #1?.png"""


def contents(page):
    found = re.findall(r'<script type="application/json" id="image-\d+">(.*?)</script>', page.read_text(), re.DOTALL)
    return [json.loads(text) for text in found]


def test_a_page_needs_nothing_else(tmp_path):
    page = explained([[hung(explanation(), tmp_path, "cat")]], tmp_path)
    text = page.read_text()
    assert page == tmp_path / "index.html"
    assert re.findall(r"https?://[^ \"']+", text) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"<(?:link|iframe|object|embed|script[^>]* src)", text) == []
    assert "default-src 'none'" in entities.unescape(text)


@pytest.mark.parametrize("votes", [True, False])
def test_everything_about_an_image_is_carried(tmp_path, votes):
    found = explanation(3, votes=votes)
    (content,) = contents(explained([[hung(found, tmp_path, "cat", level=0.9)]], tmp_path))
    (shown,) = content["views"]
    names = {"importance", "vote_share", "verdict"} if votes else {"importance", "uncertainty", "certain"}
    assert set(shown["maps"]) == names
    assert shown["layers"][2]["title"] == ("verdict at 90 % of the votes" if votes else "importance where U ≤ median")
    assert ["method.base.masks" if votes else "method.masks", "1000"] in shown["provenance"]
    assert ["level", "0.9"] in shown["provenance"]
    assert [link["href"] for link in shown["links"]] == ["cat.png", "cat.npz", "cat.json"]


def test_uncertainty_that_is_not_of_the_votes_is_carried_as_it_is():
    found = explanation()
    other = replace(found, uncertainty=found.uncertainty + 0.01)
    assert "uncertainty" in view(other, level=0.95, provenance={}).maps


@pytest.mark.parametrize(("how", "cuts"), [("weighted", []), ("binary", [0.05, 0.95])])
def test_importance_has_cuts_only_where_it_is_the_share_that_is_cut(how, cuts):
    found = explanation()
    method = {**found.provenance["method"], "votes": how}
    importance, _, verdict = view(
        replace(found, provenance={**found.provenance, "method": method}), level=0.95, provenance={}
    ).layers
    assert [value for value, _ in importance.cuts] == pytest.approx(cuts)
    assert [value for value, _ in verdict.cuts] == pytest.approx([0.05, 0.95])


def test_names_are_shown_and_linked_as_they_are_and_run_nothing(tmp_path):
    evil = hung(explanation(name=EVIL), tmp_path, EVIL.removesuffix(".png"))
    plain = hung(explanation(1), tmp_path, "cat")
    page = explained(
        [[evil, plain, ImageOutcome(Path("x"), error=rx.RepeatError("<img src=x onerror=alert(2)>"))]], tmp_path
    )
    text = page.read_text()
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert contents(page)[0]["name"] == EVIL
    assert f'<span class="name">{entities.escape(EVIL, quote=False)[:20]}' in text
    assert contents(page)[0]["views"][0]["links"][1]["href"].startswith("%3Cscript%3Ealert%281%29%3C%21--%20%5D%5D%3E")


def test_a_name_that_is_not_text(tmp_path):
    odd = hung(explanation(name="bad\udcff.png"), tmp_path, "bad\udcff")
    page = explained([[odd, hung(explanation(1), tmp_path, "cat")]], tmp_path)
    assert contents(page)[0]["name"] == "bad?.png"
    assert contents(page)[0]["views"][0]["links"][0]["href"] == "bad%FF.png"


def test_images_of_the_same_name_are_told_apart(tmp_path):
    same = [hung(explanation(i), tmp_path / place, "cat") for i, place in enumerate("ab")]
    assert [content["name"] for content in contents(explained([same], tmp_path))] == ["a/cat.png", "b/cat.png"]


def test_several_methods_of_an_image_share_its_place_and_a_failed_one_is_told(tmp_path):
    repeat, relax = (
        hung(explanation(), tmp_path / "repeat", "cat"),
        hung(explanation(votes=False), tmp_path / "relax", "cat"),
    )
    (tmp_path / "cat.comparison.png").write_bytes(b"")
    page = explained(
        [[repeat], [relax], [ImageOutcome(Path("cat.png"), error=rx.RepeatError("lime: too few"))]], tmp_path
    )
    (content,) = contents(page)
    assert [shown["title"] for shown in content["views"]] == ["REPEAT", "RELAX"]
    assert content["links"] == [{"label": "All methods (PNG)", "href": "cat.comparison.png"}]
    assert content["views"][1]["links"][1]["href"] == "relax/cat.npz"
    assert "Could not be explained: lime: too few" in page.read_text()


def test_no_page_where_nothing_could_be_explained(tmp_path):
    assert explained([[ImageOutcome(Path("a"), error=rx.RepeatError("bad"))]], tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_page_is_never_written_over(tmp_path):
    own = tmp_path / "index.html"
    own.write_text("<title>mine</title>")
    with pytest.raises(rx.errors.OutputError, match=r"index.html: is a page of your own and is not written over"):
        explained([[hung(explanation(), tmp_path, "cat")]], tmp_path)
    assert own.read_text() == "<title>mine</title>"
    own.unlink()
    own.mkdir()
    with pytest.raises(rx.errors.OutputError, match="not written over"):
        expect_free(tmp_path)
    expect_free(tmp_path / "nowhere")


def test_ours_is_written_anew_whole_or_not_at_all(tmp_path, monkeypatch):
    outcome = hung(explanation(), tmp_path, "cat")
    page = explained([[outcome]], tmp_path)
    before = page.read_text()
    more = hung(explanation(1), tmp_path, "dog")
    with monkeypatch.context() as broken:
        broken.setattr(folder.Entry, "content", interrupt)
        with pytest.raises(KeyboardInterrupt):
            explained([[outcome, more]], tmp_path)
    assert page.read_text() == before
    assert len(list(tmp_path.glob("*index*"))) + len(list(tmp_path.glob(".index*"))) == 1
    assert len(contents(explained([[outcome, more]], tmp_path))) == 2


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_beyond_what_a_page_can_hold_images_lead_to_their_panels(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "MOST", 2)
    page = explained([[hung(explanation(i), tmp_path, f"n {i}") for i in range(4)]], tmp_path)
    assert len(contents(page)) == 2
    assert re.findall(r'<a href="([^"]*)">\n', page.read_text()) == ["#image-1", "#image-2", "n%202.png", "n%203.png"]
    assert "The first 2 images open here" in page.read_text()


def test_a_provenance_gone_missing_is_one_line(tmp_path):
    outcome = hung(explanation(), tmp_path, "cat")
    outcome.files.provenance.unlink()
    with pytest.raises(rx.errors.OutputError, match=r"cat.json: cannot be read; run the same command again"):
        explained([[outcome]], tmp_path)
