"""Tables and figures of a run → `index.html` beside them, to be read in a browser."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from repeat_xai.experiments.table import Table
from repeat_xai.files.atomic import writing
from repeat_xai.output.page.images_page import INDEX, expect_free
from repeat_xai.output.page.template import filled
from repeat_xai.output.results_folder import Printed
from repeat_xai.output.tables import FORMATS, laid_out, number

FEW = 24
"""Figures that a reader may want listed before the first table."""


class Written(NamedTuple):
    """A table, and what its files are called."""

    name: str
    table: Table


def tabulated(
    tables: Sequence[Written],
    figures: Sequence[Printed],
    folder: Path,
    *,
    title: str,
    missing: Sequence[str] = (),
    about: Mapping[str, Any],
) -> Path:
    """The page; `missing` is what could not be run, `about` what was asked for."""
    expect_free(folder)
    context = {
        "title": title,
        "tables": [_table(written) for written in tables],
        "figures": [{"title": f.title, "name": f.page.name, "url": _url(f.picture)} for f in figures],
        "folded": len(figures) > FEW,
        "missing": missing,
        "about": json.dumps(about, indent=2),
    }
    with writing(folder / INDEX) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(filled("results.html", ["theme"], context))
    return folder / INDEX


def _table(written: Written) -> dict[str, Any]:
    header, rows = laid_out(written.table)
    return {
        "title": written.table.title,
        "notes": written.table.notes,
        "header": header,
        "rows": [
            (
                labels,
                [(number(cell), "" if cell.printed is None else f"{cell.printed:.3f}", best) for cell, best in cells],
            )
            for labels, cells in rows
        ],
        "links": {suffix: f"{written.name}{suffix}" for suffix in FORMATS},
    }


def _url(picture: Path) -> str:
    return f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"
