"""The figure of RELAX beside REPEAT: that a score varies does not mean that its pixel's importance is in doubt."""

from __future__ import annotations

import matplotlib.patheffects as outline
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repeat_xai.experiments.paper.figure_data import MarkedPixel, RelaxBesideRepeat
from repeat_xai.output.figures.map_drawing import (
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    draw_importance,
    draw_photo,
    draw_uncertainty,
)
from repeat_xai.output.paper_figures.canvas import (
    BAR_HEIGHT,
    FULL_WIDTH,
    HEADING,
    HEADING_HEIGHT,
    MARGIN,
    NOTE_HEIGHT,
    Canvas,
    panel_height,
    photo_note_text,
)
from repeat_xai.types import Explanation

GAP, METHOD_GAP = 0.08, 0.2
"""Inches between the maps of a method, and between methods."""
LINE_HEIGHT = 0.16
"""Inches for the text of a mark."""


def relax_beside_repeat(data: RelaxBesideRepeat) -> Figure:
    """Draw the photo, then importance and uncertainty by both methods, with the same pixels marked in every map."""
    photo, marks = data.repeat.photo, data.marks
    width = (FULL_WIDTH - 2 * MARGIN - 2 * GAP - 2 * METHOD_GAP) / 5
    height = panel_height(photo, width)
    top = 2 * HEADING_HEIGHT + 0.1
    below = top + height + BAR_HEIGHT + 0.06
    canvas = Canvas.of(FULL_WIDTH, below + LINE_HEIGHT * len(marks) + NOTE_HEIGHT)
    draw_photo(canvas.axes(MARGIN, top, width, height), photo, titled=False)
    canvas.text(MARGIN + width / 2, top - HEADING_HEIGHT / 2, "image")
    left = MARGIN + width + METHOD_GAP
    for explanation, heading in (
        (data.relax, "RELAX: how much does the score vary?"),
        (data.repeat, "REPEAT: is it important?"),
    ):
        canvas.text(left + width + GAP / 2, HEADING_HEIGHT / 2 + 0.04, heading, size=HEADING)
        canvas.line(left, left + 2 * width + GAP, HEADING_HEIGHT + 0.06)
        votes = explanation.vote_share is not None
        maps = (
            ("importance", draw_importance, explanation.importance, VOTE_SHARE_LIMITS),
            ("uncertainty", draw_uncertainty, explanation.required_uncertainty, VOTE_VARIANCE_LIMITS),
        )
        for name, draw, values, limits in maps:
            axes = canvas.axes(left, top, width, height)
            drawn = draw(axes, explanation)
            for mark in marks:
                _draw_mark(axes, explanation, mark)
            canvas.text(left + width / 2, top - HEADING_HEIGHT / 2, name)
            canvas.colour_bar(drawn, values, (left, top + height + 0.05, width), list(limits) if votes else None)
            left += width + GAP
        left += METHOD_GAP - GAP
    for number, mark in enumerate(marks):
        middle = below + LINE_HEIGHT * (number + 0.5)
        canvas.text(MARGIN, middle, mark.letter, size=HEADING, anchor="left", weight="bold")
        canvas.text(MARGIN + 0.15, middle, mark.text, anchor="left")
    canvas.note(photo_note_text(data.source, photo))
    return canvas.figure


def _draw_mark(axes: Axes, explanation: Explanation, mark: MarkedPixel) -> None:
    """Draw a ring around a pixel, and its letter on the side where there is more room."""
    height, width = explanation.importance.shape
    left, top, right, bottom = explanation.photo.box
    x = left + (mark.column + 0.5) / width * (right - left)
    y = top + (mark.row + 0.5) / height * (bottom - top)
    halo = [outline.withStroke(linewidth=2, foreground="black")]
    axes.plot([x], [y], "o", markersize=5, markerfacecolor="none", color="white", path_effects=halo, clip_on=False)
    side = 1 if mark.column < width / 2 else -1
    axes.annotate(
        mark.letter,
        (x, y),
        xytext=(8 * side, 0),
        textcoords="offset points",
        ha="center",
        va="center_baseline",
        fontsize=HEADING,
        fontweight="bold",
        color="white",
        path_effects=halo,
    )
