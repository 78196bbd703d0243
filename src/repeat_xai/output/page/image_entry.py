"""One image on a page of images: its card in the gallery, and its content, made from the files of its explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from repeat_xai.errors import OutputError
from repeat_xai.files.reading import read_json
from repeat_xai.output.figures.map_drawing import VOTE_VARIANCE_LIMITS
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.page.file_names import relative_link
from repeat_xai.output.page.layers import LayerKind, layers
from repeat_xai.output.page.method_view import Link, method_view, verdict_summary
from repeat_xai.output.page.page_parts import Card, Content
from repeat_xai.output.page.pictures import photo_url, thumbnail_url
from repeat_xai.types import Explanation


class SavedExplanation(NamedTuple):
    """One method's explanation of an image and its provenance, as read from their files."""

    explanation: Explanation
    record: Mapping[str, Any]
    files: ResultFiles


def read_explanation(files: ResultFiles) -> SavedExplanation:
    """Read an explanation and its provenance, each from disk once."""
    try:
        record = read_json(files.provenance)
    except (OSError, ValueError) as error:
        raise OutputError(f"{files.provenance}: cannot be read; run the same command again") from error
    return SavedExplanation(files.explanation(), record, files)


@final
@dataclass(frozen=True, kw_only=True)
class ImageEntry:
    """One image: the files of its explanations, one of each method, and what is known about it."""

    name: str
    files: Sequence[ResultFiles]
    uncertainty: float | None = None
    """The image's score; None stands for the mean over the first method's map."""
    in_higher_group: float | None = None
    """Probability that the image belongs to the more uncertain of two groups."""
    facts: Sequence[str] = ()
    comparison: Path | None = None
    """A picture of all methods side by side."""

    def card(self, saved: SavedExplanation, folder: Path, *, anchor: str | None, layer: LayerKind) -> Card:
        """Return the image's card with one layer beside the photo; it links to the anchor, or else to the panel."""
        explanation, level = saved.explanation, saved.record["level"]
        chosen = next(each for each in layers(explanation, level=level) if each.kind == layer)
        uncertainty = explanation.uncertainty
        values = explanation.importance if layer == "importance" else uncertainty
        score, limit = self.uncertainty, None
        if score is None and uncertainty is not None:
            score = uncertainty.double().mean().item()
            limit = None if explanation.vote_share is None else VOTE_VARIANCE_LIMITS[1]
        return Card(
            name=self.name,
            thumbnail=thumbnail_url(explanation.photo, values, chosen.colours, chosen.limits),
            href=anchor or relative_link(saved.files.panel, folder),
            summary=verdict_summary(explanation, level),
            uncertainty=score,
            uncertainty_limit=limit,
            in_higher_group=self.in_higher_group,
        )

    def content(self, saved: Sequence[SavedExplanation], folder: Path, *, max_side: int) -> Content:
        """Return everything that is shown of the image; the photo's longer side has at most `max_side` pixels."""
        photo = saved[0].explanation.photo
        views = []
        for explanation, record, files in saved:
            labels = {"Panel (PNG)": files.panel, "Maps (npz)": files.maps, "Provenance (JSON)": files.provenance}
            links = [Link(label=label, href=relative_link(path, folder)) for label, path in labels.items()]
            views.append(method_view(explanation, level=record["level"], provenance=record, links=links))
        links = []
        if self.comparison is not None:
            links.append(Link(label="All methods (PNG)", href=relative_link(self.comparison, folder)))
        return Content(
            name=self.name,
            photo=photo_url(photo, longest=max_side),
            size=photo.size,
            box=photo.box,
            facts=self.facts,
            views=views,
            links=links,
        )
