"""The figure of one map under several thresholds: where each cuts the importance, and the pixels it leaves."""

from __future__ import annotations

from itertools import cycle

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.experiments.paper.figure_data import CutMap
from repeat_xai.output.figures.curves import LINES, STYLES
from repeat_xai.output.figures.map_drawing import IMPORTANCE, draw_map, draw_photo
from repeat_xai.output.paper_figures.canvas import (
    BAR_HEIGHT,
    COLUMN_WIDTH,
    GREY,
    HEADING,
    HEADING_HEIGHT,
    MARGIN,
    NOTE_HEIGHT,
    SMALL,
    Canvas,
    panel_height,
    photo_note_text,
)

GAP = 0.1
SAMPLE_WIDTH = 0.28
"""Inches of line, in the colour and style of a threshold, beside its name."""
HALF_NUMBER_WIDTH = 0.14
"""Inches that a number at the end of an axis may reach beyond it."""
BINS = 64


def cut_map(data: CutMap) -> Figure:
    """Draw photo, importance and its histogram above; below, what each cut leaves, and of how many pixels."""
    photo, importance = data.photo, data.importance
    width = (COLUMN_WIDTH - 2 * MARGIN - (len(data.cuts) - 1) * GAP) / len(data.cuts)
    height = panel_height(photo, width)
    top, below = HEADING_HEIGHT, HEADING_HEIGHT + height + BAR_HEIGHT + 0.42
    canvas = Canvas.of(COLUMN_WIDTH, below + height + 0.1 + NOTE_HEIGHT)
    draw_photo(canvas.axes(MARGIN, top, width, height), photo, titled=False)
    canvas.text(MARGIN + width / 2, HEADING_HEIGHT / 2 + 0.02, "image", size=HEADING)
    left = MARGIN + width + GAP
    limits = (importance.min().item(), importance.max().item())
    drawn = draw_map(canvas.axes(left, top, width, height), photo, importance, IMPORTANCE, limits)
    canvas.text(left + width / 2, HEADING_HEIGHT / 2 + 0.02, "importance  R", size=HEADING)
    canvas.colour_bar(drawn, importance, (left, top + height + 0.05, width))

    left += width + 2 * GAP
    right = COLUMN_WIDTH - MARGIN - HALF_NUMBER_WIDTH
    histogram = canvas.axes(left, top, right - left, height)
    histogram.hist(importance.flatten().numpy(), BINS, range=limits, histtype="stepfilled", color="#C8C8C8")
    histogram.set(xlim=limits, yticks=[])
    histogram.xaxis.set_major_locator(MaxNLocator(4))
    histogram.tick_params(labelsize=SMALL, length=2, pad=1.5)
    histogram.spines[["top", "right", "left"]].set_visible(False)
    canvas.text((left + right) / 2, HEADING_HEIGHT / 2 + 0.02, "pixels by importance", size=HEADING)

    colours = colormaps[IMPORTANCE].with_extremes(bad=(0, 0, 0, 0))
    left = MARGIN
    for cut, colour, style in zip(data.cuts, cycle(LINES), cycle(STYLES), strict=False):
        histogram.axvline(cut.cut, color=colour, linestyle=style, linewidth=1.6)
        axes = canvas.axes(left, below, width, height)
        draw_map(axes, photo, importance.masked_fill(importance < cut.cut, torch.nan), colours, limits)
        axes.spines[:].set(color=colour, linewidth=1.6, zorder=4)
        canvas.line(left, left + SAMPLE_WIDTH, below - 0.28, colour=colour, style=style, width=1.6)
        canvas.text(left + SAMPLE_WIDTH + 0.07, below - 0.28, cut.threshold, size=HEADING, anchor="left")
        canvas.text(left, below - 0.11, f"≥ {cut.cut:#.4g}: {100 * cut.share:.0f} %", colour=GREY, anchor="left")
        left += width + GAP
    canvas.note(photo_note_text(data.source, photo))
    return canvas.figure
