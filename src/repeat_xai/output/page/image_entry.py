"""One image's files → its card in the gallery, and its content when it is looked at."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

from repeat_xai.errors import OutputError
from repeat_xai.files.reading import read_json
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.page.layers import Kind, layers
from repeat_xai.output.page.page_template_data import Card, Content
from repeat_xai.output.page.pictures import photo_url, thumbnail_url
from repeat_xai.output.page.view import Link, view


@final
@dataclass(frozen=True, kw_only=True)
class Entry:
    """One image: what each method found, and what is said of it."""

    name: str
    files: Sequence[ResultFiles]
    uncertainty: float | None = None
    """None: the mean over the first method's map."""
    unknown: float | None = None
    facts: Sequence[str] = ()
    comparison: Path | None = None

    def card(self, folder: Path, *, view: str | None, shown: Kind) -> Card:
        """Its card, with the map shown beside the photo; without a view it leads to the panel."""
        explanation = self.files[0].explanation()
        layer = next(one for one in layers(explanation, level=record(self.files[0])["level"]) if one.kind == shown)
        values = explanation.uncertainty if shown == "uncertainty" else explanation.importance
        mean = AGGREGATES["mean"](explanation.uncertainty).item()
        return Card(
            name=self.name,
            thumbnail=thumbnail_url(explanation.photo, values, layer.colours, layer.limits),
            href=view or href(self.files[0].panel, folder),
            uncertainty=mean if self.uncertainty is None else self.uncertainty,
            unknown=self.unknown,
        )

    def content(self, folder: Path, *, longest: int) -> Content:
        """All of it, the photo's longer side at most so many pixels."""
        found = [(files.explanation(), record(files), files) for files in self.files]
        photo = found[0][0].photo
        views = []
        for explanation, made, files in found:
            labels = {"Panel (PNG)": files.panel, "Maps (npz)": files.maps, "Provenance (JSON)": files.provenance}
            links = [Link(label=label, href=href(path, folder)) for label, path in labels.items()]
            views.append(view(explanation, level=made["level"], provenance=made, links=links))
        beside = self.comparison
        return Content(
            name=self.name,
            photo=photo_url(photo, longest=longest),
            size=photo.size,
            box=photo.box,
            facts=self.facts,
            views=views,
            links=[] if beside is None else [Link(label="All methods (PNG)", href=href(beside, folder))],
        )


def names(paths: Sequence[Path]) -> list[str]:
    """What images are called: by their file's name, and its folder's too where several have that name."""
    often = Counter(path.name for path in paths)
    called = (path.name if often[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths)
    return [name.encode(errors="replace").decode() for name in called]


def record(files: ResultFiles) -> Mapping[str, Any]:
    """The provenance on disk."""
    try:
        return read_json(files.provenance)
    except (OSError, ValueError) as error:
        raise OutputError(f"{files.provenance}: cannot be read; run the same command again") from error


def href(path: Path, folder: Path) -> str:
    """The way to a file from a page in the folder."""
    return quote(os.fsencode(Path(os.path.relpath(path, folder)).as_posix()))
