"""One map under several thresholds: where each cuts, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.output.figures.canvas import BAR, GREY, HEAD, HEADING, MARGIN, NARROW, NOTE, SMALL, Canvas, height_of
from repeat_xai.output.figures.curves import LINES, STYLES
from repeat_xai.output.figures.explanation_maps import draw_bare
from repeat_xai.output.figures.map_drawing import IMPORTANCE, draw_map
from repeat_xai.types import Photo

if TYPE_CHECKING:
    from repeat_xai.types import Map

GAP = 0.1
SAMPLE = 0.28
"""Of a line, beside its name."""
NUMBER = 0.14
"""Half as wide as a number, which may stand at the end of an axis."""
BINS = 64


class Cut(NamedTuple):
    """A threshold, where it cuts, and what share of the pixels reaches it."""

    name: str
    at: float
    kept: float


def cuts(photo: Photo, importance: Map, found: Sequence[Cut], *, note: str) -> Figure:
    """Photo, importance and its histogram above; below what each cut leaves, and of how many pixels."""
    wide = (NARROW - 2 * MARGIN - (len(found) - 1) * GAP) / len(found)
    tall = height_of(photo, wide)
    top, below = HEAD, HEAD + tall + BAR + 0.42
    canvas = Canvas.of(NARROW, below + tall + 0.1 + NOTE)
    draw_bare(canvas.axes(MARGIN, top, wide, tall), photo)
    canvas.text(MARGIN + wide / 2, HEAD / 2 + 0.02, "image", size=HEADING)
    left = MARGIN + wide + GAP
    limits = (importance.min().item(), importance.max().item())
    drawn = draw_map(canvas.axes(left, top, wide, tall), photo, importance, IMPORTANCE, limits)
    canvas.text(left + wide / 2, HEAD / 2 + 0.02, "importance  R", size=HEADING)
    canvas.bar(drawn, importance, (left, top + tall + 0.05, wide))

    left += wide + 2 * GAP
    right = NARROW - MARGIN - NUMBER
    counts = canvas.axes(left, top, right - left, tall)
    counts.hist(importance.flatten().numpy(), BINS, range=limits, histtype="stepfilled", color="#C8C8C8")
    counts.set(xlim=limits, yticks=[])
    counts.xaxis.set_major_locator(MaxNLocator(4))
    counts.tick_params(labelsize=SMALL, length=2, pad=1.5)
    counts.spines[["top", "right", "left"]].set_visible(False)
    canvas.text((left + right) / 2, HEAD / 2 + 0.02, "pixels by importance", size=HEADING)

    colours = colormaps[IMPORTANCE].with_extremes(bad=(0, 0, 0, 0))
    left = MARGIN
    for cut, colour, style in zip(found, cycle(LINES), cycle(STYLES), strict=False):
        counts.axvline(cut.at, color=colour, linestyle=style, linewidth=1.6)
        axes = canvas.axes(left, below, wide, tall)
        draw_map(axes, photo, importance.masked_fill(importance < cut.at, torch.nan), colours, limits)
        axes.spines[:].set(color=colour, linewidth=1.6, zorder=4)
        canvas.line(left, left + SAMPLE, below - 0.28, colour=colour, style=style, width=1.6)
        canvas.text(left + SAMPLE + 0.07, below - 0.28, cut.name, size=HEADING, anchor="left")
        canvas.text(left, below - 0.11, f"≥ {cut.at:#.4g}: {100 * cut.kept:.0f} %", colour=GREY, anchor="left")
        left += wide + GAP
    canvas.note(note)
    return canvas.figure
