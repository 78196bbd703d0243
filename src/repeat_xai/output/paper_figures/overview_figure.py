"""The figure of REPEAT step by step: the maps of several runs, their cuts, their votes, and the mean of the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.experiments.paper.figure_data import RepeatSteps
from repeat_xai.output.figures.map_drawing import (
    IMPORTANCE,
    UNCERTAINTY,
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    draw_map,
    draw_photo,
)
from repeat_xai.output.paper_figures.canvas import (
    BAR_HEIGHT,
    FULL_WIDTH,
    GREY,
    HEADING,
    MARGIN,
    NOTE_HEIGHT,
    SMALL,
    Canvas,
    panel_height,
    photo_note_text,
)

if TYPE_CHECKING:
    from repeat_xai.types import Map

BELOW_CUT, ABOVE_CUT = "#0072B2", "#D55E00"
"""Colours of pixels below the cut, and of those at or above it."""
IMAGE_WIDTH, RUN_WIDTH, HISTOGRAM_WIDTH, RESULT_WIDTH = 1.2, 0.98, 1.05, 1.25
GAP = (FULL_WIDTH - 2 * MARGIN - IMAGE_WIDTH - 2 * RUN_WIDTH - HISTOGRAM_WIDTH - RESULT_WIDTH) / 4
RESULT_GAP, RUN_GAP = 0.42, 0.2
"""Inches between the two results, where a heading stands, and at least between runs."""
SHOWN_RUNS = 3
BINS = 40
HISTOGRAM_SHARE = 0.82
"""Share of a histogram's height that its bars may fill; above them stands the cut."""
HEADINGS_HEIGHT = 0.44


def repeat_steps(steps: RepeatSteps) -> Figure:
    """Draw some of the runs from left to right, the last among them, and the two maps that all runs make together."""
    photo, maps = steps.photo, steps.maps
    runs = len(maps)
    shown = list(range(runs)) if runs <= SHOWN_RUNS else [*range(SHOWN_RUNS - 1), runs - 1]
    height, result_height = panel_height(photo, RUN_WIDTH), panel_height(photo, RESULT_WIDTH)
    runs_height = len(shown) * (height + RUN_GAP) - RUN_GAP + BAR_HEIGHT
    body = max(runs_height, 2 * (result_height + BAR_HEIGHT) + RESULT_GAP)
    canvas = Canvas.of(FULL_WIDTH, HEADINGS_HEIGHT + body + NOTE_HEIGHT)
    run_widths = (RUN_WIDTH, HISTOGRAM_WIDTH, RUN_WIDTH)
    lefts = [MARGIN]
    for width in (IMAGE_WIDTH, *run_widths):
        lefts.append(lefts[-1] + width + GAP)
    middle = HEADINGS_HEIGHT + (body - BAR_HEIGHT) / 2
    pitch = (body - BAR_HEIGHT - height) / max(1, len(shown) - 1)
    for left, width, heading, line in zip(
        lefts[1:4],
        run_widths,
        ("importance  R(k)", "histogram, cut  τ(k)", "votes  I(k)"),
        (f"{runs} runs of RELAX", "pixels of each map", "1 where R(k) ≥ τ(k)"),
        strict=True,
    ):
        _write_heading(canvas, left + width / 2, HEADINGS_HEIGHT, heading, line)

    image_height = panel_height(photo, IMAGE_WIDTH)
    image_top = middle - image_height / 2
    draw_photo(canvas.axes(lefts[0], image_top, IMAGE_WIDTH, image_height), photo, titled=False)
    _write_heading(canvas, lefts[0] + IMAGE_WIDTH / 2, image_top + 0.14, "image", "")
    limits = (maps.min().item(), maps.max().item())
    for place, run in enumerate(shown):
        top = HEADINGS_HEIGHT + pitch * place if len(shown) > 1 else middle - height / 2
        centre = top + height / 2
        panel = canvas.axes(lefts[1], top, RUN_WIDTH, height)
        draw_map(panel, photo, maps[run], IMPORTANCE, limits)
        panel.set_ylabel(f"k = {run + 1}", fontsize=SMALL, labelpad=2)
        histogram = canvas.axes(lefts[2], top, HISTOGRAM_WIDTH, height)
        _draw_histogram(histogram, maps[run], steps.cuts[run].item(), limits)
        histogram.tick_params(labelbottom=place == len(shown) - 1)
        vote_axes = canvas.axes(lefts[3], top, RUN_WIDTH, height)
        vote_colours = ListedColormap([BELOW_CUT, ABOVE_CUT])
        draw_map(vote_axes, photo, steps.votes[run].double(), vote_colours, VOTE_SHARE_LIMITS)
        canvas.arrow((lefts[0] + IMAGE_WIDTH + 0.04, middle), (lefts[1] - 0.17, centre))
        for column, width in ((1, RUN_WIDTH), (2, HISTOGRAM_WIDTH)):
            canvas.arrow((lefts[column] + width + 0.05, centre), (lefts[column + 1] - 0.05, centre))
        canvas.arrow((lefts[3] + RUN_WIDTH + 0.04, centre), (lefts[4] - 0.05, HEADINGS_HEIGHT + result_height / 2))
    if runs > SHOWN_RUNS:
        gap_middle = HEADINGS_HEIGHT + pitch * 1.5 + height / 2
        for left, width in zip(lefts[1:4], run_widths, strict=True):
            canvas.text(left + width / 2, gap_middle, "⋮", size=HEADING, colour=GREY)

    results = (
        ("importance  p", "mean of the votes", steps.importance, IMPORTANCE, VOTE_SHARE_LIMITS),
        ("uncertainty", "p(1 − p), their variance", steps.uncertainty, UNCERTAINTY, VOTE_VARIANCE_LIMITS),
    )
    top = HEADINGS_HEIGHT
    for name, line, values, colours, result_limits in results:
        axes = canvas.axes(lefts[4], top, RESULT_WIDTH, result_height)
        drawn = draw_map(axes, photo, values, colours, result_limits)
        _write_heading(canvas, lefts[4] + RESULT_WIDTH / 2, top, name, line)
        canvas.colour_bar(drawn, values, (lefts[4], top + result_height + 0.05, RESULT_WIDTH), list(result_limits))
        top = HEADINGS_HEIGHT + body - BAR_HEIGHT - result_height
    canvas.note(photo_note_text(steps.source, photo))
    return canvas.figure


def _write_heading(canvas: Canvas, centre: float, top: float, name: str, line: str) -> None:
    """Write the name of a panel, and a line of explanation, above it."""
    canvas.text(centre, top - 0.28, name, size=HEADING)
    canvas.text(centre, top - 0.11, line, size=SMALL, colour=GREY)


def _draw_histogram(axes: Axes, values: Map, cut: float, limits: tuple[float, float]) -> None:
    """Draw the number of pixels by their importance, coloured by the side of the cut on which they lie."""
    flat = values.flatten()
    sides = [flat[flat < cut].numpy(), flat[flat >= cut].numpy()]
    axes.hist(sides, BINS, range=limits, histtype="stepfilled", stacked=True, color=[BELOW_CUT, ABOVE_CUT])
    axes.axvline(cut, ymax=HISTOGRAM_SHARE, color="black", linewidth=1)
    axes.annotate(f"τ = {cut:#.4g}", (1, 1), xycoords="axes fraction", ha="right", va="top", fontsize=SMALL)
    axes.set(xlim=limits, ylim=(0, axes.get_ylim()[1] / HISTOGRAM_SHARE), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.tick_params(labelsize=SMALL, length=2, pad=1.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
