"""The figures of the paper: the data of each is drawn here, and written as a PNG and a PDF."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path

from matplotlib.figure import Figure

from repeat_xai.errors import choose
from repeat_xai.experiments.paper.figure_data import (
    FIGURE_DATA,
    CutMap,
    ExplanationGrid,
    FigureData,
    MaskedSimilarities,
    OodScores,
    PoisonedPair,
    PoisonScores,
    RelaxBesideRepeat,
    RepeatSteps,
)
from repeat_xai.experiments.paper.figure_request import FigureRequest
from repeat_xai.output.paper_figures.example_figures import explanation_grid, poisoned_pair
from repeat_xai.output.paper_figures.motivation_figure import relax_beside_repeat
from repeat_xai.output.paper_figures.overview_figure import repeat_steps
from repeat_xai.output.paper_figures.score_figures import ood_histograms, poison_histograms, similarity_histogram
from repeat_xai.output.paper_figures.threshold_figure import cut_map
from repeat_xai.output.results_folder import FigureFiles, is_up_to_date, write_figure_files

__all__ = ["draw_figure", "write_figure"]


@singledispatch
def draw_figure(data: FigureData) -> Figure:
    """Draw what a figure of the paper shows; the type of the data decides which drawing it is."""
    raise TypeError(f"there is no drawing of {type(data).__name__}")


draw_figure.register(RelaxBesideRepeat, relax_beside_repeat)
draw_figure.register(RepeatSteps, repeat_steps)
draw_figure.register(CutMap, cut_map)
draw_figure.register(ExplanationGrid, explanation_grid)
draw_figure.register(PoisonedPair, poisoned_pair)
draw_figure.register(OodScores, ood_histograms)
draw_figure.register(MaskedSimilarities, similarity_histogram)
draw_figure.register(PoisonScores, poison_histograms)


def write_figure(request: FigureRequest, folder: Path) -> FigureFiles:
    """Write a figure of the paper as PNG and PDF, unless the folder holds it already.

    A figure of single images is drawn again only if something that it depends on has changed. A figure of scores is
    always drawn again: it depends on rows, which may have changed.
    """
    figure = request.figure
    choose("figure", figure.name, FIGURE_DATA)
    title = f"{figure.title} ({figure.where}), {request.encoder_spec.label}"
    picture = folder / f"{figure.name}-{request.encoder_spec.label}.png"
    files = FigureFiles(picture, picture.with_suffix(".pdf"), title)
    if not figure.scored and is_up_to_date(files, request.key):
        return files
    return write_figure_files(draw_figure(FIGURE_DATA[figure.name](request)), picture, title=title, key=request.key)
