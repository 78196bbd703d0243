"""The same image clean and poisoned: what its poison does to importance and to uncertainty."""

from __future__ import annotations

from matplotlib.figure import Figure

from repeat_xai.output.figures.canvas import BAR, HEAD, HEADING, MARGIN, NARROW, NOTE, Canvas, height_of
from repeat_xai.output.figures.explanation_maps import (
    SHARE,
    VARIANCE,
    draw_bare,
    draw_importance,
    draw_uncertainty,
    ends,
)
from repeat_xai.types import Explanation

GAP, ASIDE = 0.1, 0.2


def poisoned_pair(clean: Explanation, poisoned: Explanation, *, note: str) -> Figure:
    """Image, importance and uncertainty, the clean image's above the poisoned one's, on the same scales."""
    wide = (NARROW - 2 * MARGIN - ASIDE - 2 * GAP) / 3
    tall = height_of(clean.photo, wide)
    canvas = Canvas.of(NARROW, HEAD + 0.02 + 2 * tall + GAP + BAR + 0.04 + NOTE)
    lefts = [MARGIN + ASIDE + (wide + GAP) * place for place in range(3)]
    for left, name in zip(lefts, ("image", "importance", "uncertainty"), strict=True):
        canvas.text(left + wide / 2, HEAD / 2 + 0.02, name, size=HEADING)
    top = HEAD + 0.02
    for name, explanation in (("clean", clean), ("poisoned", poisoned)):
        canvas.aside(MARGIN + ASIDE / 2 - 0.03, top + tall / 2, name)
        draw_bare(canvas.axes(lefts[0], top, wide, tall), explanation.photo)
        importance = draw_importance(canvas.axes(lefts[1], top, wide, tall), explanation)
        uncertainty = draw_uncertainty(canvas.axes(lefts[2], top, wide, tall), explanation)
        top += tall + GAP
    for left, drawn, values, limits in (
        (lefts[1], importance, poisoned.importance, SHARE),
        (lefts[2], uncertainty, poisoned.uncertainty, VARIANCE),
    ):
        canvas.bar(drawn, values, (left, top - GAP + 0.05, wide), ends(poisoned, limits))
    canvas.note(note)
    return canvas.figure
