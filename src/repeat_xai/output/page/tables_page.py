"""The page of `evaluate` and `reproduce`: `index.html` beside tables and figures, to be read in a browser."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from repeat_xai.experiments.table import Table
from repeat_xai.files.atomic import writing
from repeat_xai.output.page.file_names import file_name, paths_in, without_folders, without_paths
from repeat_xai.output.page.images_page import INDEX, expect_replaceable_page
from repeat_xai.output.page.template import fill_template
from repeat_xai.output.results_folder import FigureFiles
from repeat_xai.output.tables import FORMATS, laid_out, number

MAX_LISTED_FIGURES = 24
"""The list of this many figures is open at first; a longer one would push the first table off the screen."""
MAX_LISTED_FAILURES = 500


class NamedTable(NamedTuple):
    """A table, and the name that its files have in common."""

    name: str
    table: Table


class FailedRow(NamedTuple):
    """An image that could not be judged, what it was judged by, and why that failed."""

    image: str
    dataset: str
    encoder: str
    method: str
    reason: str


def write_tables_page(
    tables: Sequence[NamedTable],
    figures: Sequence[FigureFiles],
    folder: Path,
    *,
    title: str,
    missing: Sequence[str] = (),
    failures: Sequence[FailedRow] = (),
    about: Mapping[str, Any],
) -> Path:
    """Write the page and return its path.

    `missing` says what could not be run at all, `failures` which images failed, `about` how the run was set up.
    """
    expect_replaceable_page(folder)
    known = [folder / INDEX, *paths_in(about)]

    def shown(text: str) -> str:
        return without_folders(text, *known)

    context = {
        "title": shown(title),
        "tables": [_table_parts(named, shown) for named in tables],
        "figures": [{"title": shown(f.title), "name": f.page.name, "url": _png_url(f.picture)} for f in figures],
        "figures_open": len(figures) <= MAX_LISTED_FIGURES,
        "missing": [shown(line) for line in missing],
        "failures": [[shown(file_name(cell)) for cell in failure] for failure in failures[:MAX_LISTED_FAILURES]],
        "failure_count": len(failures),
        "about": json.dumps(without_paths(about), indent=2),
    }
    with writing(folder / INDEX) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(fill_template("tables_page.html", ["theme"], context))
    return folder / INDEX


def _table_parts(named: NamedTable, shown: Callable[[str], str]) -> dict[str, Any]:
    """Return what the template needs of a table; each cell is its number, the paper's number and whether it is best."""
    header, rows = laid_out(named.table)
    return {
        "title": shown(named.table.title),
        "notes": [shown(note) for note in named.table.notes],
        "header": [shown(cell) for cell in header],
        "rows": [
            (
                [shown(label) for label in labels],
                [(number(cell), "" if cell.printed is None else f"{cell.printed:.3f}", best) for cell, best in cells],
            )
            for labels, cells in rows
        ],
        "links": {suffix: f"{named.name}{suffix}" for suffix in FORMATS},
    }


def _png_url(picture: Path) -> str:
    return f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"
