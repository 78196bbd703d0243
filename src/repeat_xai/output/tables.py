"""Tables to be read: on screen, as Markdown, LaTeX or CSV.

Methods stand beside each other where there are fewer of them than columns, else below each other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as Grid

from repeat_xai.experiments.table import Cell, Table
from repeat_xai.files.atomic import writing

ARROWS = {"higher": " ↑", "lower": " ↓", "neither": ""}
NONE = "–"
ESCAPES = str.maketrans(
    {char: f"\\{char}" for char in "_%&#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"–": "--", "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}
)
DIGITS = 3
LEVEL = 0.05
"""Below it a corrected p is starred."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Letters after which a spreadsheet takes what follows for a formula, and runs it."""


class Entry(NamedTuple):
    """A cell, and whether it is the best of its encoder's in its column."""

    cell: Cell
    best: bool


def text(cell: Cell) -> str:
    """A number with its interval, a star where it differs from the baseline's, and what the paper prints."""
    return number(cell) + _printed(cell)


def number(cell: Cell) -> str:
    """The same without what the paper prints."""
    mean, low, high = cell.summary.mean, cell.summary.low, cell.summary.high
    interval = _deviation(cell) if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return NONE if mean is None else f"{mean:.3f}{interval}{_star(cell)}{_undefined(cell)}"


def on_screen(table: Table) -> Grid:
    """For a terminal."""
    header, rows = laid_out(table)
    caption = escape("\n".join(table.notes))
    grid = Grid(*map(escape, header), title=escape(table.title), caption=caption, box=SIMPLE_HEAD)
    grid.title_justify = grid.caption_justify = "left"
    for column in grid.columns:
        column.overflow = "fold"
    for labels, entries in rows:
        numbers = ((escape(text(e.cell)), e.best) for e in entries)
        grid.add_row(*map(escape, labels), *(f"[bold]{number}[/bold]" if best else number for number, best in numbers))
    return grid


def markdown(table: Table) -> str:
    """With its notes below."""
    header, rows = laid_out(table)
    lines = [header, ["---"] * len(header)]
    for labels, entries in rows:
        lines.append([*labels, *(f"**{text(e.cell)}**" if e.best else text(e.cell) for e in entries)])
    body = ["| " + " | ".join(part.replace("|", r"\|") for part in line) + " |" for line in lines]
    return "\n".join([f"**{table.title}**", "", *body, "", *(f"{note}  " for note in table.notes)]) + "\n"


def latex(table: Table) -> str:
    """For booktabs."""
    header, rows = laid_out(table)
    lines = [_latex_row(header), r"\midrule"]
    for labels, entries in rows:
        cells = [text(e.cell).translate(ESCAPES) for e in entries]
        bold = [rf"\textbf{{{cell}}}" if e.best else cell for cell, e in zip(cells, entries, strict=True)]
        lines.append(" & ".join([*(label.translate(ESCAPES) for label in labels), *bold]) + r" \\")
    caption = " ".join((f"{table.title}.", *table.notes)).translate(ESCAPES)
    columns, body = "ll" + "r" * (len(header) - 2), "\n".join(lines)
    return (
        f"\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n"
        f"\\end{{tabular}}\n\\caption{{{caption}}}\n\\end{{table}}\n"
    )


def comma_separated(table: Table) -> str:
    """A line a number, with all that is known of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    known = ("mean", "deviation", "low", "high", "images", "undefined", "difference", "p", "p_corrected", "printed")
    writer.writerow(("encoder", "method", "column", "better", *known))
    for labels, cells in table.lines.items():
        for title, better, cell in zip(table.columns, table.better, cells, strict=True):
            beside = tuple(cell.comparison)[:3] if cell.comparison else (None, None, None)
            numbers = (*cell.summary, *beside, cell.printed)
            texts = map(spreadsheet_text, (*labels, title, better))
            writer.writerow((*texts, *("" if value is None else value for value in numbers)))
    return out.getvalue()


def spreadsheet_text(text: str) -> str:
    """Return the text of a cell, with an apostrophe in front where a spreadsheet would take it for a formula.

    >>> spreadsheet_text("=HYPERLINK(1).png"), spreadsheet_text("cat.png")
    ("'=HYPERLINK(1).png", 'cat.png')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


FORMATS: dict[str, Callable[[Table], str]] = {".md": markdown, ".tex": latex, ".csv": comma_separated}


def write(table: Table, folder: Path, name: str) -> list[Path]:
    """In every format."""
    paths = [folder / f"{name}{suffix}" for suffix in FORMATS]
    for path, form in zip(paths, FORMATS.values(), strict=True):
        with writing(path) as draft:
            draft.write_text(form(table), encoding="utf-8")
    return paths


def laid_out(table: Table) -> tuple[list[str], Iterator[tuple[list[str], list[Entry]]]]:
    """A header and rows, whichever way is narrower."""
    titles = [f"{title}{ARROWS[better]}" for title, better in zip(table.columns, table.better, strict=True)]
    methods = list(dict.fromkeys(method for _, method in table.lines))
    best = _best(table)
    if len(methods) >= len(titles):
        rows = (
            ([*labels], [Entry(cell, (labels, at) in best) for at, cell in enumerate(cells)])
            for labels, cells in table.lines.items()
        )
        return ["encoder", "method", *titles], rows
    beside = (
        ([encoder, title], [Entry(table.lines[encoder, m][at], ((encoder, m), at) in best) for m in methods])
        for encoder in dict.fromkeys(encoder for encoder, _ in table.lines)
        for at, title in enumerate(titles)
    )
    return ["encoder", "", *methods], beside


def _best(table: Table) -> set[tuple[tuple[str, str], int]]:
    """The best of each encoder's column as it is printed, by where it stands."""
    found: set[tuple[tuple[str, str], int]] = set()
    for at, better in enumerate(table.better):
        for encoder in {encoder for encoder, _ in table.lines}:
            means = ((labels, cells[at].summary.mean) for labels, cells in table.lines.items() if labels[0] == encoder)
            known = {labels: round(mean, DIGITS) for labels, mean in means if mean is not None}
            if better != "neither" and len(set(known.values())) > 1:
                top = max(known.values()) if better == "higher" else min(known.values())
                found |= {(labels, at) for labels, mean in known.items() if mean == top}
    return found


def _deviation(cell: Cell) -> str:
    """Where there is no interval."""
    return "" if cell.summary.deviation is None else f" ±{cell.summary.deviation:.1e}"


def _undefined(cell: Cell) -> str:
    """How many images a number rests on, where it is not all of them."""
    return f" (n={cell.summary.images})" if cell.summary.undefined else ""


def _star(cell: Cell) -> str:
    corrected = cell.comparison.corrected if cell.comparison else None
    return "*" if corrected is not None and corrected < LEVEL else ""


def _printed(cell: Cell) -> str:
    return "" if cell.printed is None else f" (paper {cell.printed:.3f})"


def _latex_row(parts: list[str]) -> str:
    return " & ".join(part.translate(ESCAPES) for part in parts) + r" \\"
