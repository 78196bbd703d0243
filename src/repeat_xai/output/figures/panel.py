"""One explanation → photo, importance, uncertainty and verdict."""

from __future__ import annotations

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.output.figures.captions import caption
from repeat_xai.output.figures.map_drawing import (
    UNCERTAINTY,
    colour_bar,
    draw_map,
    draw_photo,
    draw_verdict,
    most_of,
    scale,
)
from repeat_xai.types import Explanation

FEW = MaxNLocator(4)
"""As many marks on a scale as have room."""
VERDICTS = ("certainly\nunimportant", "undecided", "certainly\nimportant")


def panel(explanation: Explanation, *, level: float = 0.95) -> Figure:
    """Photo, importance, uncertainty and verdict side by side, each map on its own scale."""
    photo = explanation.photo
    height, width = photo.size
    side = 3.0
    tall = min(max(side * height / width, 1.2), 6.0)
    figure = Figure(figsize=(4 * side + 0.6, tall + 1.15), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(tall, 0.11))
    pictures = [figure.add_subplot(grid[0, i]) for i in range(4)]
    bars = [figure.add_subplot(grid[1, i]) for i in range(1, 4)]
    figure.suptitle(caption(explanation), fontsize=8, color="#444444", parse_math=False)

    draw_photo(pictures[0], photo)
    votes = explanation.vote_share is not None
    colours, limits = scale(explanation.importance, votes=votes)
    drawn = draw_map(pictures[1], photo, explanation.importance, colours, limits)
    pictures[1].set_title("importance  p" if votes else "importance  R", fontsize=10)
    colour_bar(figure, drawn, bars[0], explanation.importance, [0.0, 0.5, 1.0] if votes else FEW)
    range_ = (0.0, 0.25) if votes else most_of(explanation.uncertainty)
    spread = draw_map(pictures[2], photo, explanation.uncertainty, UNCERTAINTY, range_)
    pictures[2].set_title("uncertainty  p(1 − p)" if votes else "uncertainty  U", fontsize=10)
    colour_bar(figure, spread, bars[1], explanation.uncertainty, [0.0, 0.125, 0.25] if votes else FEW)
    if votes:
        verdict = draw_verdict(pictures[3], photo, explanation.verdict(level))
        pictures[3].set_title(f"verdict at {100 * level:g} % of the votes", fontsize=10)
        bar = figure.colorbar(verdict, cax=bars[2], orientation="horizontal", ticks=[-1, 0, 1])
        bar.ax.set_xticklabels(VERDICTS)
    else:
        unsure = explanation.uncertainty > explanation.uncertainty.median()
        certain = explanation.importance.masked_fill(unsure, torch.nan)
        shown = draw_map(pictures[3], photo, certain, colormaps[colours].with_extremes(bad="white"), limits)
        pictures[3].set_title("importance where U ≤ median", fontsize=10)
        colour_bar(figure, shown, bars[2], explanation.importance, FEW)
    for bar_axes in bars:
        bar_axes.tick_params(labelsize=8)
    return figure
