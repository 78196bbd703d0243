"""Tables in the terminal, and as Markdown, LaTeX and CSV."""

import csv
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from repeat_xai.experiments.columns import UNDEFINED
from repeat_xai.experiments.table import Cell, Table
from repeat_xai.metrics import Comparison, Summary
from repeat_xai.output.tables import comma_separated, latex, markdown, on_screen, spreadsheet_text, write


def cell(mean, p=None, printed=None):
    comparison = None if p is None else Comparison(0.5, p, p, 9)
    return Cell(Summary(mean, 0.2, mean - 0.1, mean + 0.3, 9, int(mean == 4)), comparison, printed)


@pytest.fixture
def table():
    return Table(
        title="Two of each",
        notes=("9 images",),
        columns=("depth_of (I)", "breadth (U)"),
        better=("higher", "lower"),
        lines={
            ("net", "one"): (cell(1.0, p=0.01), cell(2.0, printed=2.1)),
            ("net", "two"): (cell(3.0, p=0.5), cell(4.0)),
            ("net", "three"): (cell(2.0), Cell(UNDEFINED)),
        },
    )


def test_markdown_shows_interval_star_and_printed_value_of_every_number(table):
    rows = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert rows[0] == "| encoder | method | depth_of (I) ↑ | breadth (U) ↓ |"
    assert rows[2] == "| net | one | 1.000 [0.900, 1.300]* | **2.000 [1.900, 2.300] (paper 2.100)** |"
    assert rows[3] == "| net | two | **3.000 [2.900, 3.300]** | 4.000 [3.900, 4.300] (n=9) |"
    assert rows[4] == "| net | three | 2.000 [1.900, 2.300] | – |"
    assert markdown(table).rstrip().endswith("9 images")


def test_a_table_with_fewer_methods_than_columns_is_turned_round(table):
    few = {labels: cells for labels, cells in table.lines.items() if labels[1] == "one"}
    rows = [line for line in markdown(Table(**vars(table) | {"lines": few})).splitlines() if line.startswith("|")]
    assert rows[0] == "| encoder |  | one |"
    assert rows[2].startswith("| net | depth_of (I) ↑ | 1.000")
    assert len(rows) == 4


def test_the_best_value_at_the_shown_digits_is_bold_unless_all_are_equal(table):
    first = next(iter(table.lines.values()))
    alike = [tuple(Cell(each.summary._replace(mean=mean)) for each in first) for mean in (1.00001, 1.00002, 0.5)]
    lines = dict(zip(table.lines, alike, strict=True))
    rows = [line for line in markdown(replace(table, lines=lines)).splitlines() if line.startswith("| net")]
    assert [row.split(" | ")[2].startswith("**1.000") for row in rows] == [True, True, False]
    same = {labels: alike[place] for place, labels in enumerate(list(table.lines)[:2])}
    assert "**1.000" not in markdown(replace(table, lines=same))


def test_special_characters_of_latex_are_escaped(table):
    text = latex(table)
    assert r"depth\_of (I) $\uparrow$" in text
    assert r"\textbf{3.000 [2.900, 3.300]}" in text
    assert text.count(r"\\") == 4
    assert not re.search(r"(?<!\\)[_%#]", text)
    odd = latex(replace(table, title=r"a\b $x^"))
    assert r"a\textbackslash{}b \$x\textasciicircum{}" in odd
    assert [text.count(f"\\{word}") for word in ("toprule", "midrule", "bottomrule")] == [1, 1, 1]


def test_csv_holds_every_number_in_full(table):
    rows = list(csv.DictReader(io.StringIO(comma_separated(table))))
    assert len(rows) == 6
    assert rows[0] == {
        "encoder": "net", "method": "one", "column": "depth_of (I)", "better": "higher", "mean": "1.0",
        "deviation": "0.2", "low": "0.9", "high": "1.3", "images": "9", "undefined": "0", "difference": "0.5",
        "p": "0.01", "p_corrected": "0.01", "printed": "",
    }  # fmt: skip
    assert (rows[1]["printed"], rows[5]["mean"]) == ("2.1", "")


def test_on_screen_nothing_is_left_out(table):
    texts = {}
    for width in (100, 40):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(on_screen(table))
        texts[width] = console.export_text()
    assert "3.000 [2.900, 3.300]" in texts[100]
    assert sorted("".join(texts[40].split()).replace("─", "")) == sorted("".join(texts[100].split()).replace("─", ""))


def test_names_that_look_like_markup_and_numbers_without_an_interval_are_shown(table):
    console = Console(width=100, record=True, file=io.StringIO())
    over = Cell(Summary(1.0, 4.7e-4, None, None, 9, 0))
    console.print(on_screen(replace(table, title="[raw] set", lines={("net", "[one]"): (over, over)})))
    text = console.export_text()
    assert "[raw] set" in text
    assert "[one]" in text
    assert "1.000 ±4.7e-04" in text


def test_all_formats_are_written(table, tmp_path):
    paths = write(table, tmp_path, "mine")
    assert [path.name for path in paths] == ["mine.md", "mine.tex", "mine.csv"]
    assert all(path.stat().st_size > 100 for path in paths)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_names_in_csv_are_not_taken_for_formulas():
    lines = {("@SUM(A1)", "-2+3"): (Cell(Summary(-0.5, None, None, None, 1, 0)),)}
    table = Table(title="a", notes=(), columns=("=1+1",), better=("higher",), lines=lines)
    row = next(csv.reader(comma_separated(table).splitlines()[1:]))
    assert row[:5] == ["'@SUM(A1)", "'-2+3", "'=1+1", "higher", "-0.5"]


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", " =", "\u00a0 =", "\u3000＝", "\t", "\r", "\n"]
)
def test_a_name_that_a_spreadsheet_may_take_for_a_formula_gets_an_apostrophe(start):
    assert spreadsheet_text(f"{start}a.jpg") == f"'{start}a.jpg"


@pytest.mark.parametrize("name", ["a=b.jpg", " cat.jpg", "猫=.jpg", ""])
def test_other_names_are_left_as_they_are(name):
    assert spreadsheet_text(name) == name
