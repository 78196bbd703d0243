"""Figures of explanations: one as a panel, and several of the same photo side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.output.figures.captions import budget, caption, movement, subject, title
from repeat_xai.output.figures.figure_files import SilentFigure
from repeat_xai.output.figures.map_drawing import (
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    add_colour_bar,
    draw_importance,
    draw_map,
    draw_photo,
    draw_uncertainty,
    draw_verdict,
    importance_scale,
)
from repeat_xai.types import Explanation

BAR_TICKS = MaxNLocator(4)
"""At most so many intervals on a colour bar of a panel: more numbers would touch each other."""
WARNING_COLOUR = "#B00020"
VERDICTS = ("certainly\nunimportant", "undecided", "certainly\nimportant")
PANEL_WIDTH, COMPARISON_WIDTH = 3.0, 2.2
"""Inches that one map is wide, in a panel and in a comparison."""


def panel(explanation: Explanation, *, level: float = 0.95) -> Figure:
    """Draw photo, importance, uncertainty and verdict side by side, each map on its own scale.

    A method without votes has in place of the verdict its importance where uncertainty is at most the median; a method
    without uncertainty has photo and importance alone.
    """
    photo, importance, uncertainty = explanation.photo, explanation.importance, explanation.uncertainty
    votes = explanation.vote_share is not None
    columns = 2 if uncertainty is None else 4
    height = min(max(PANEL_WIDTH * photo.size[0] / photo.size[1], 1.2), 6.0)
    figure = SilentFigure(figsize=(columns * PANEL_WIDTH + 0.6, height + 1.3), layout="constrained")
    grid = figure.add_gridspec(2, columns, height_ratios=(height, 0.11))
    pictures = [figure.add_subplot(grid[0, column]) for column in range(columns)]
    bars = [figure.add_subplot(grid[1, column]) for column in range(1, columns)]
    note = movement(explanation)
    notes = "\n".join(filter(None, (caption(explanation), str(note))))
    colour = WARNING_COLOUR if note.warning else "#444444"
    figure.suptitle(notes, fontsize=8, color=colour, parse_math=False)

    draw_photo(pictures[0], photo)
    drawn = draw_importance(pictures[1], explanation)
    pictures[1].set_title("importance  p" if votes else "importance  R", fontsize=10)
    add_colour_bar(figure, drawn, bars[0], importance, [0.0, 0.5, 1.0] if votes else BAR_TICKS)
    if uncertainty is not None:
        drawn = draw_uncertainty(pictures[2], explanation)
        pictures[2].set_title("uncertainty  p(1 − p)" if votes else "uncertainty  U", fontsize=10)
        add_colour_bar(figure, drawn, bars[1], uncertainty, [0.0, 0.125, 0.25] if votes else BAR_TICKS)
    if uncertainty is not None and votes:
        drawn = draw_verdict(pictures[3], photo, explanation.verdict(level))
        pictures[3].set_title(f"verdict at {100 * level:g} % of the votes", fontsize=10)
        bar = figure.colorbar(drawn, cax=bars[2], orientation="horizontal", ticks=[-1, 0, 1])
        bar.ax.set_xticklabels(VERDICTS)
    elif uncertainty is not None:
        colours, limits = importance_scale(explanation)
        certain = importance.masked_fill(~explanation.certain_half(), torch.nan)
        drawn = draw_map(pictures[3], photo, certain, colormaps[colours].with_extremes(bad="white"), limits)
        pictures[3].set_title("importance where U ≤ median", fontsize=10)
        add_colour_bar(figure, drawn, bars[2], importance, BAR_TICKS)
    for axes in bars:
        axes.tick_params(labelsize=8)
    return figure


def comparison(explanations: Sequence[Explanation]) -> Figure:
    """Draw one photo by several methods, a column each: importance above, uncertainty below, each on its own scale."""
    photo = explanations[0].photo
    columns = len(explanations)
    height = min(max(COMPARISON_WIDTH * photo.size[0] / photo.size[1], 0.9), 4.4)
    figure = SilentFigure(figsize=((columns + 1) * COMPARISON_WIDTH + 0.4, 2 * height + 1.5), layout="constrained")
    grid = figure.add_gridspec(4, columns + 1, height_ratios=(height, 0.07, height, 0.07))
    first = figure.add_subplot(grid[0, 0])
    draw_photo(first, photo)
    first.set_title("photo", fontsize=9)
    figure.suptitle(subject(explanations[0]), fontsize=8, color="#444444", parse_math=False)
    for column, explanation in enumerate(explanations, start=1):
        votes = explanation.vote_share is not None
        maps = (
            (0, "importance", explanation.importance, draw_importance, VOTE_SHARE_LIMITS),
            (2, "uncertainty", explanation.uncertainty, draw_uncertainty, VOTE_VARIANCE_LIMITS),
        )
        for row, name, values, draw, limits in maps:
            axes = figure.add_subplot(grid[row, column])
            if column == 1:
                axes.set_ylabel(name, fontsize=9)
            if values is None:  # the method has no uncertainty: its place stays empty, so that the columns line up
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set_visible(False)
                continue
            drawn = draw(axes, explanation)
            bar = figure.add_subplot(grid[row + 1, column])
            add_colour_bar(figure, drawn, bar, values, list(limits) if votes else MaxNLocator(2))
            bar.tick_params(labelsize=7)
            if row == 0:
                axes.set_title("\n".join((title(explanation), "  ·  ".join(budget(explanation)))), fontsize=8)
    return figure
