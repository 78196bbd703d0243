"""Explanations → files in a folder: for each image a panel, its maps and its provenance.

The provenance is written last, so that an image whose provenance is there is done, and a run can go on where it broke
off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repeat_xai.files import writing
from repeat_xai.plot import panel
from repeat_xai.types import Explanation

DPI = 150


class Files(NamedTuple):
    """Where one image's results are."""

    panel: Path
    maps: Path
    provenance: Path

    @staticmethod
    def of(folder: Path, name: str) -> Files:
        return Files(*(folder / f"{name}{suffix}" for suffix in (".png", ".npz", ".json")))


def names_for(paths: Iterable[Path]) -> list[str]:
    """A name for each image's results: its own without the ending, numbered where two are alike.

    >>> names_for([Path("a/cat.jpg"), Path("b/cat.jpg"), Path("dog.png")])
    ['cat', 'cat-2', 'dog']
    """
    taken: set[str] = set()
    names = []
    for path in paths:
        name, number = path.stem, 2
        while name.casefold() in taken:
            name, number = f"{path.stem}-{number}", number + 1
        taken.add(name.casefold())
        names.append(name)
    return names


def hang(explanation: Explanation, files: Files, *, level: float) -> None:
    """Write the panel, the maps and, last, the provenance."""
    explanation.save(files.maps)
    with writing(files.panel) as draft:
        panel(explanation, level=level).savefig(draft, format="png", dpi=DPI)
    with writing(files.provenance) as draft:
        draft.write_text(json.dumps({**explanation.provenance, "level": level}, indent=2) + "\n", encoding="utf-8")


def finished(files: Files, request: Mapping[str, Any], *, level: float) -> dict[str, Any] | None:
    """The provenance of a result that answers this very request already, if there is one."""
    try:
        record: dict[str, Any] = json.loads(files.provenance.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    wanted = json.loads(json.dumps({**request, "level": level}))
    same = isinstance(record, dict) and all(record.get(key) == value for key, value in wanted.items())
    return record if same and files.panel.exists() and files.maps.exists() else None
