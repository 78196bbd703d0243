"""Explanations of one photo by several methods → a column each."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.output.figures.captions import budget, subject, title
from repeat_xai.output.figures.map_drawing import UNCERTAINTY, colour_bar, draw_map, draw_photo, most_of, scale
from repeat_xai.types import Explanation


def comparison(explanations: Sequence[Explanation]) -> Figure:
    """One photo by several methods, a column each: importance above, uncertainty below, every map on its own scale."""
    photo = explanations[0].photo
    side, columns = 2.2, len(explanations)
    tall = min(max(side * photo.size[0] / photo.size[1], 0.9), 4.4)
    figure = Figure(figsize=((columns + 1) * side + 0.4, 2 * tall + 1.5), layout="constrained")
    grid = figure.add_gridspec(4, columns + 1, height_ratios=(tall, 0.07, tall, 0.07))
    first = figure.add_subplot(grid[0, 0])
    draw_photo(first, photo)
    first.set_title("photo", fontsize=9)
    figure.suptitle(subject(explanations[0]), fontsize=8, color="#444444", parse_math=False)
    for column, explanation in enumerate(explanations, start=1):
        votes = explanation.vote_share is not None
        for row, values in ((0, explanation.importance), (2, explanation.uncertainty)):
            axes = figure.add_subplot(grid[row, column])
            colours, limits = scale(values, votes=votes) if row == 0 else (UNCERTAINTY, (0.0, 0.25))
            drawn = draw_map(axes, photo, values, colours, limits if votes or row == 0 else most_of(values))
            bar_axes = figure.add_subplot(grid[row + 1, column])
            colour_bar(figure, drawn, bar_axes, values, list(limits) if votes else MaxNLocator(2))
            bar_axes.tick_params(labelsize=7)
            if row == 0:
                axes.set_title("\n".join((title(explanation), "  ·  ".join(budget(explanation)))), fontsize=8)
            if column == 1:
                axes.set_ylabel(("importance", "uncertainty")[row // 2], fontsize=9)
    return figure
