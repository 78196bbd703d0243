"""The figures of the paper → files: what each needs is computed here, and handed to `plot`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from repeat_xai.errors import choose
from repeat_xai.output.paper_figures.figure_request import Asked, Rows
from repeat_xai.output.paper_figures.photo_figures import (
    motivation,
    overview,
    poisoned_example,
    qualitative,
    threshold_example,
)
from repeat_xai.output.paper_figures.score_figures import ood_histograms, poison_histograms, similarity_range
from repeat_xai.output.results_folder import Printed, is_there, print_out

__all__ = ["DRAWINGS", "Asked", "Rows", "drawn"]

DRAWINGS: dict[str, Callable[[Asked], Figure]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        motivation,
        overview,
        threshold_example,
        qualitative,
        ood_histograms,
        similarity_range,
        poison_histograms,
        poisoned_example,
    )
}


def drawn(asked: Asked, folder: Path) -> Printed:
    """Draw a figure of the paper as PNG and PDF; one that is there already, of all the same, is left as it is."""
    choose("figure", asked.entry.name, DRAWINGS)
    title = f"{asked.entry.title} ({asked.entry.where}), {asked.network.label}"
    picture = folder / f"{asked.entry.name}-{asked.network.label}.png"
    printed = Printed(picture, picture.with_suffix(".pdf"), title)
    if not asked.entry.scored and is_there(printed, asked.key):
        return printed
    return print_out(DRAWINGS[asked.entry.name](asked), picture, title=title, key=asked.key)
