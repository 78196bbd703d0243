"""Tables for the terminal, and as Markdown, LaTeX and CSV.

A table with fewer methods than columns is turned round: its methods stand beside each other.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as Grid

from repeat_xai.experiments.table import Cell, Table
from repeat_xai.files.atomic import writing

ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
NO_VALUE = "–"
LATEX_ESCAPES = str.maketrans(
    {char: f"\\{char}" for char in "_%&#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"–": "--", "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}
)
DIGITS = 3
SIGNIFICANCE = 0.05
"""A corrected p-value below this is marked by a star."""
FORMULA_STARTS = ("=", "+", "-", "@")
"""Letters at the start of a cell after which a spreadsheet takes it for a formula, and runs it."""
CONTROL_STARTS = ("\t", "\r", "\n")
"""Letters that some spreadsheets skip at the start of a cell."""


class TableCell(NamedTuple):
    """A cell, and whether it is the best of its encoder in its column."""

    cell: Cell
    best: bool


def text(cell: Cell) -> str:
    """Return a number with its interval, a star where it differs from the baseline's, and the paper's value."""
    return number(cell) + _printed(cell)


def number(cell: Cell) -> str:
    """Return the same without the paper's value."""
    mean, low, high = cell.summary.mean, cell.summary.low, cell.summary.high
    interval = _deviation(cell) if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return NO_VALUE if mean is None else f"{mean:.3f}{interval}{_star(cell)}{_undefined(cell)}"


def on_screen(table: Table) -> Grid:
    """Return the table for a terminal."""
    header, rows = laid_out(table)
    caption = escape("\n".join(table.notes))
    grid = Grid(*map(escape, header), title=escape(table.title), caption=caption, box=SIMPLE_HEAD)
    grid.title_justify = grid.caption_justify = "left"
    for column in grid.columns:
        column.overflow = "fold"
    for labels, cells in rows:
        texts = ((escape(text(each.cell)), each.best) for each in cells)
        grid.add_row(*map(escape, labels), *(f"[bold]{value}[/bold]" if best else value for value, best in texts))
    return grid


def markdown(table: Table) -> str:
    """Return the table as Markdown, with its notes below."""
    header, rows = laid_out(table)
    lines = [header, ["---"] * len(header)]
    for labels, cells in rows:
        lines.append([*labels, *(f"**{text(each.cell)}**" if each.best else text(each.cell) for each in cells)])
    body = ["| " + " | ".join(part.replace("|", r"\|") for part in line) + " |" for line in lines]
    return "\n".join([f"**{table.title}**", "", *body, "", *(f"{note}  " for note in table.notes)]) + "\n"


def latex(table: Table) -> str:
    """Return the table as LaTeX, for the package booktabs."""
    header, rows = laid_out(table)
    lines = [_latex_row(header), r"\midrule"]
    for labels, cells in rows:
        texts = [text(each.cell).translate(LATEX_ESCAPES) for each in cells]
        bold = [rf"\textbf{{{value}}}" if each.best else value for value, each in zip(texts, cells, strict=True)]
        lines.append(" & ".join([*(label.translate(LATEX_ESCAPES) for label in labels), *bold]) + r" \\")
    caption = " ".join((f"{table.title}.", *table.notes)).translate(LATEX_ESCAPES)
    columns, body = "ll" + "r" * (len(header) - 2), "\n".join(lines)
    return (
        f"\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n\\caption{{{caption}}}\n\\end{{table}}\n"
    )


def comma_separated(table: Table) -> str:
    """Return the table as CSV: a line for each number, with its interval, its comparison and the paper's value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("mean", "deviation", "low", "high", "images", "undefined", "difference", "p", "p_corrected", "printed")
    writer.writerow(("encoder", "method", "column", "better", *fields))
    for labels, cells in table.lines.items():
        for title, better, cell in zip(table.columns, table.better, cells, strict=True):
            comparison = tuple(cell.comparison)[:3] if cell.comparison else (None, None, None)
            numbers = (*cell.summary, *comparison, cell.printed)
            texts = map(spreadsheet_text, (*labels, title, better))
            writer.writerow((*texts, *("" if value is None else value for value in numbers)))
    return out.getvalue()


def spreadsheet_text(text: str) -> str:
    """Return the text of a cell, with an apostrophe in front where a spreadsheet would take it for a formula.

    Some spreadsheets skip spaces at the start of a cell, and take the wide letters of East Asian scripts for ours.

    >>> spreadsheet_text("=HYPERLINK(1).png"), spreadsheet_text("cat.png")
    ("'=HYPERLINK(1).png", 'cat.png')
    """
    plain = unicodedata.normalize("NFKC", text).lstrip()
    return f"'{text}" if plain.startswith(FORMULA_STARTS) or text.startswith(CONTROL_STARTS) else text


FORMATS: dict[str, Callable[[Table], str]] = {".md": markdown, ".tex": latex, ".csv": comma_separated}


def write(table: Table, folder: Path, name: str) -> list[Path]:
    """Write the table to a folder in every format, and return the paths."""
    paths = [folder / f"{name}{suffix}" for suffix in FORMATS]
    for path, formatted in zip(paths, FORMATS.values(), strict=True):
        with writing(path) as draft:
            draft.write_text(formatted(table), encoding="utf-8")
    return paths


def laid_out(table: Table) -> tuple[list[str], Iterator[tuple[list[str], list[TableCell]]]]:
    """Return a header and rows: methods below each other, or beside each other where that is narrower."""
    titles = [f"{title}{ARROWS[better]}" for title, better in zip(table.columns, table.better, strict=True)]
    methods = list(dict.fromkeys(method for _, method in table.lines))
    best = _best(table)
    if len(methods) >= len(titles):
        rows = (
            ([*labels], [TableCell(cell, (labels, at) in best) for at, cell in enumerate(cells)])
            for labels, cells in table.lines.items()
        )
        return ["encoder", "method", *titles], rows
    turned = (
        ([encoder, title], [TableCell(table.lines[encoder, m][at], ((encoder, m), at) in best) for m in methods])
        for encoder in dict.fromkeys(encoder for encoder, _ in table.lines)
        for at, title in enumerate(titles)
    )
    return ["encoder", "", *methods], turned


def _best(table: Table) -> set[tuple[tuple[str, str], int]]:
    """Return the labels and the column of every cell that is the best of its encoder, at the digits that are shown."""
    cells_in_bold: set[tuple[tuple[str, str], int]] = set()
    for at, better in enumerate(table.better):
        for encoder in {encoder for encoder, _ in table.lines}:
            means = ((labels, cells[at].summary.mean) for labels, cells in table.lines.items() if labels[0] == encoder)
            rounded = {labels: round(mean, DIGITS) for labels, mean in means if mean is not None}
            if better != "neither" and len(set(rounded.values())) > 1:
                top = max(rounded.values()) if better == "higher" else min(rounded.values())
                cells_in_bold |= {(labels, at) for labels, mean in rounded.items() if mean == top}
    return cells_in_bold


def _deviation(cell: Cell) -> str:
    """Return the standard deviation of a number that has no interval."""
    return "" if cell.summary.deviation is None else f" ±{cell.summary.deviation:.1e}"


def _undefined(cell: Cell) -> str:
    """Return how many images a number rests on, where it is undefined for some of them."""
    return f" (n={cell.summary.images})" if cell.summary.undefined else ""


def _star(cell: Cell) -> str:
    corrected = cell.comparison.corrected if cell.comparison else None
    return "*" if corrected is not None and corrected < SIGNIFICANCE else ""


def _printed(cell: Cell) -> str:
    return "" if cell.printed is None else f" (paper {cell.printed:.3f})"


def _latex_row(parts: list[str]) -> str:
    return " & ".join(part.translate(LATEX_ESCAPES) for part in parts) + r" \\"
