"""The page of a run holds every number and picture, lists what failed, and holds nothing of the machine."""

import re
from base64 import b64decode
from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from results import run_of

from repeat_xai.errors import OutputError
from repeat_xai.output.page import FailedRow, write_tables_page
from repeat_xai.output.results_folder import write_figure_files
from repeat_xai.output.tables import comma_separated


def cells(text):
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", text)]


def test_every_number_is_on_the_page_with_the_papers_and_the_best_is_bold(tmp_path):
    tables, figures = run_of(tmp_path)
    text = write_tables_page(tables, figures, tmp_path, title="The paper anew", about={"seed": 3}).read_text()
    assert cells(text)[:4] == ["encoder", "method", "depth (I) ↑", "breadth (U) ↓"]
    assert cells(text)[4:8] == ["net", "one", "1.000 [0.900, 1.300]", "2.000 [1.900, 2.300] paper 2.100"]
    assert cells(text)[8:12] == ["net", "two", "3.000 [2.900, 3.300]", "–"]
    assert re.findall("<strong>(.*?)</strong>", text) == ["3.000 [2.900, 3.300]"]
    assert 'href="depths.csv"' in text
    assert "2 tables" not in text
    assert "1 table ·" in text
    assert "&#34;seed&#34;: 3" in text


def test_pictures_are_in_the_page_and_their_pdfs_are_linked(tmp_path):
    tables, figures = run_of(tmp_path)
    text = write_tables_page(tables, figures, tmp_path, title="t", about={}).read_text()
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert b64decode(data) == figures[0].picture.read_bytes()
    assert 'href="curve.pdf"' in text


@pytest.mark.parametrize(("count", "is_open"), [(24, True), (25, False)])
def test_a_long_list_of_figures_is_folded(tmp_path, count, is_open):
    _, figures = run_of(tmp_path)
    page = write_tables_page([], figures * count, tmp_path, title="All", about={}).read_text()
    assert ("<details open>" in page) == is_open


@pytest.mark.slow
def test_what_could_not_be_run_comes_before_the_tables(tmp_path):
    tables, figures = run_of(tmp_path)
    text = write_tables_page(
        tables, figures, tmp_path, title="t", missing=["sanity: voc (not found)"], about={}
    ).read_text()
    assert 0 < text.index("sanity: voc (not found)") < text.index("<table")
    assert "Could not be run" not in write_tables_page(tables, figures, tmp_path, title="t", about={}).read_text()


def test_a_name_that_holds_a_script_is_shown_as_text(tmp_path):
    tables, _ = run_of(tmp_path)
    odd = "<script>alert(1)</script>"
    lines = {("net", odd): next(iter(tables[0].table.lines.values()))}
    figure = write_figure_files(Figure(), tmp_path / "a.png", title=odd)
    named = tables[0]._replace(table=replace(tables[0].table, title=odd, notes=(odd,), lines=lines))
    text = write_tables_page([named], [figure], tmp_path, title=odd, missing=[odd], about={"name": odd}).read_text()
    assert odd not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 7
    assert odd in comma_separated(named.table)


def test_a_page_of_the_users_own_is_not_replaced(tmp_path):
    tables, figures = run_of(tmp_path)
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(OutputError, match="page of your own"):
        write_tables_page(tables, figures, tmp_path, title="t", about={})
    assert (tmp_path / "index.html").read_text() == "mine"


def test_failed_images_are_listed_with_their_reasons_folded_below_the_tables(tmp_path):
    tables, figures = run_of(tmp_path)
    failed = [FailedRow(f"{i}.png", "/data/my photos", "net", "repeat", "is damaged") for i in range(502)]
    text = write_tables_page(tables, figures, tmp_path, title="t", failures=failed, about={}).read_text()
    listed = text[text.index('<details id="failures">') :]
    assert text.index("<h2") < text.index('<details id="failures">')
    assert cells(listed)[5:10] == ["0.png", "my photos", "net", "repeat", "is damaged"]
    assert listed.count("is damaged") == 500
    assert "Only the first 500 are listed" in listed
    assert '<a href="#failures">502 failed results</a>' in text
    without = write_tables_page(tables, figures, tmp_path, title="t", about={}).read_text()
    assert 'id="failures"' not in without


def test_the_page_holds_no_folder_of_the_machine(tmp_path):
    tables, figures = run_of(tmp_path)
    photos = str(tmp_path / "my photos")
    about = {"asked": {"dataset": photos}, "images": {photos: 9}}
    table = replace(tables[0].table, title=f"Methods on {photos}", columns=(f"AUROC against {photos} (U)", "breadth"))
    failed = [FailedRow("cat.png", photos, "net", "repeat", f"{photos}/cat.png: is damaged")]
    text = write_tables_page(
        [tables[0]._replace(table=table)],
        [figures[0]._replace(title=f"Curves, {photos}")],
        tmp_path,
        title=f"Methods on {photos}",
        missing=[f"ood: {photos} (not found)"],
        failures=failed,
        about=about,
    ).read_text()
    assert str(tmp_path) not in text
    assert tmp_path.name not in text
    assert "AUROC against my photos (U)" in text
    assert "&#34;my photos&#34;: 9" in text
