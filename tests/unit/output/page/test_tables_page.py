"""The page of a run: every number and picture is on it, and nothing that a name could smuggle in."""

import re
from base64 import b64decode
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from results import run_of

from repeat_xai.errors import OutputError
from repeat_xai.output.page import tabulated
from repeat_xai.output.results_folder import print_out
from repeat_xai.output.tables import comma_separated


def cells(text):
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", text)]


def test_every_number_is_on_it_with_what_the_paper_prints_and_the_best_is_bold(tmp_path):
    tables, figures = run_of(tmp_path)
    text = tabulated(tables, figures, tmp_path, title="The paper anew", about={"seed": 3}).read_text()
    assert cells(text)[:4] == ["encoder", "method", "depth (I) ↑", "breadth (U) ↓"]
    assert cells(text)[4:8] == ["net", "one", "1.000 [0.900, 1.300]", "2.000 [1.900, 2.300] paper 2.100"]
    assert cells(text)[8:12] == ["net", "two", "3.000 [2.900, 3.300]", "–"]
    assert re.findall("<strong>(.*?)</strong>", text) == ["3.000 [2.900, 3.300]"]
    assert 'href="depths.csv"' in text
    assert "2 tables" not in text
    assert "1 table ·" in text
    assert "&#34;seed&#34;: 3" in text


def test_pictures_are_in_the_page_itself_and_their_pdfs_beside_it(tmp_path):
    tables, figures = run_of(tmp_path)
    text = tabulated(tables, figures, tmp_path, title="t", about={}).read_text()
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert b64decode(data) == figures[0].picture.read_bytes()
    assert 'href="curve.pdf"' in text


@pytest.mark.parametrize(("count", "listed"), [(24, True), (25, False)])
def test_many_figures_are_listed_when_asked_for(tmp_path, count, listed):
    _, figures = run_of(tmp_path)
    page = tabulated([], figures * count, tmp_path, title="All", about={}).read_text()
    assert ("<details open>" in page) == listed


def test_what_could_not_be_run_is_said_first(tmp_path):
    tables, figures = run_of(tmp_path)
    text = tabulated(tables, figures, tmp_path, title="t", missing=["sanity: voc (not found)"], about={}).read_text()
    assert 0 < text.index("sanity: voc (not found)") < text.index("<table")
    assert "Could not be run" not in tabulated(tables, figures, tmp_path, title="t", about={}).read_text()


def test_names_are_text_whatever_they_hold(tmp_path):
    tables, _ = run_of(tmp_path)
    odd = "<script>alert(1)</script>"
    lines = {("net", odd): next(iter(tables[0].table.lines.values()))}
    figure = print_out(Figure(), tmp_path / "a.png", title=odd)
    named = tables[0]._replace(table=replace(tables[0].table, title=odd, notes=(odd,), lines=lines))
    text = tabulated([named], [figure], tmp_path, title=odd, missing=[odd], about={"name": odd}).read_text()
    assert odd not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 7
    assert odd in comma_separated(named.table)


def test_a_page_of_the_users_own_is_left_alone(tmp_path):
    tables, figures = run_of(tmp_path)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(OutputError, match="is a page of your own"):
        tabulated(tables, figures, tmp_path, title="t", about={})
    assert (tmp_path / "index.html").read_text() == "mine"
