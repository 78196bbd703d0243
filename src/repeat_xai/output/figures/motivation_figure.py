"""RELAX beside REPEAT: that a score varies is not that its pixel is in doubt."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.patheffects as outline
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from repeat_xai.output.figures.canvas import BAR, HEAD, HEADING, MARGIN, NOTE, WIDE, Canvas, height_of
from repeat_xai.output.figures.explanation_maps import (
    SHARE,
    VARIANCE,
    draw_bare,
    draw_importance,
    draw_uncertainty,
    ends,
)
from repeat_xai.types import Explanation

GAP, BETWEEN = 0.08, 0.2
LINE = 0.16


class Mark(NamedTuple):
    """A pixel to look at, and what is said of it."""

    letter: str
    row: int
    column: int
    words: str


def motivation(relax: Explanation, repeat: Explanation, *, marks: tuple[Mark, ...], note: str) -> Figure:
    """The photo, then importance and uncertainty by both, with the same pixels marked in every map."""
    photo = repeat.photo
    wide = (WIDE - 2 * MARGIN - 2 * GAP - 2 * BETWEEN) / 5
    tall = height_of(photo, wide)
    top = 2 * HEAD + 0.1
    below = top + tall + BAR + 0.06
    canvas = Canvas.of(WIDE, below + LINE * len(marks) + NOTE)
    first = canvas.axes(MARGIN, top, wide, tall)
    draw_bare(first, photo)
    canvas.text(MARGIN + wide / 2, top - HEAD / 2, "image")
    left = MARGIN + wide + BETWEEN
    for explanation, method in ((relax, "RELAX: how much does the score vary?"), (repeat, "REPEAT: is it important?")):
        canvas.text(left + wide + GAP / 2, HEAD / 2 + 0.04, method, size=HEADING)
        canvas.line(left, left + 2 * wide + GAP, HEAD + 0.06)
        maps = (
            ("importance", draw_importance, explanation.importance, SHARE),
            ("uncertainty", draw_uncertainty, explanation.uncertainty, VARIANCE),
        )
        for name, draw, values, limits in maps:
            axes = canvas.axes(left, top, wide, tall)
            drawn = draw(axes, explanation)
            for mark in marks:
                _draw_mark(axes, explanation, mark)
            canvas.text(left + wide / 2, top - HEAD / 2, name)
            canvas.bar(drawn, values, (left, top + tall + 0.05, wide), ends(explanation, limits))
            left += wide + GAP
        left += BETWEEN - GAP
    for number, mark in enumerate(marks):
        canvas.text(MARGIN, below + LINE * (number + 0.5), mark.letter, size=HEADING, anchor="left", weight="bold")
        canvas.text(MARGIN + 0.15, below + LINE * (number + 0.5), mark.words, anchor="left")
    canvas.note(note)
    return canvas.figure


def _draw_mark(axes: Axes, explanation: Explanation, mark: Mark) -> None:
    """A ring, and its letter on the side where there is more room."""
    height, width = explanation.importance.shape
    left, top, right, bottom = explanation.photo.box
    x = left + (mark.column + 0.5) / width * (right - left)
    y = top + (mark.row + 0.5) / height * (bottom - top)
    halo = [outline.withStroke(linewidth=2, foreground="black")]
    axes.plot([x], [y], "o", markersize=5, markerfacecolor="none", color="white", path_effects=halo, clip_on=False)
    beside = 1 if mark.column < width / 2 else -1
    axes.annotate(
        mark.letter,
        (x, y),
        xytext=(8 * beside, 0),
        textcoords="offset points",
        ha="center",
        va="center_baseline",
        fontsize=HEADING,
        fontweight="bold",
        color="white",
        path_effects=halo,
    )
