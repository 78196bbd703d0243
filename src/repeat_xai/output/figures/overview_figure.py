"""REPEAT step by step: maps of several runs, their cuts, their votes, and what the votes come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.output.figures.canvas import BAR, GREY, HEADING, MARGIN, NOTE, SMALL, WIDE, Canvas, height_of
from repeat_xai.output.figures.explanation_maps import SHARE, VARIANCE, draw_bare
from repeat_xai.output.figures.map_drawing import IMPORTANCE, UNCERTAINTY, draw_map
from repeat_xai.types import Photo

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.types import Map

NO, YES = "#0072B2", "#D55E00"
"""Below the cut, and at or above it."""
IMAGE, RUN, COUNTS, RESULT = 1.2, 0.98, 1.05, 1.25
"""Widths of the panels."""
GAP = (WIDE - 2 * MARGIN - IMAGE - 2 * RUN - COUNTS - RESULT) / 4
FAR, CLOSE = 0.42, 0.2
"""Between the two results, where a heading stands, and at least between runs."""
SHOWN = 3
BINS = 40
BELOW = 0.82
"""How much of a histogram's height lies below its words."""
HEADS = 0.44


def overview(
    photo: Photo,
    maps: Float[Tensor, "repeats height width"],
    cuts: Float[Tensor, " repeats"],
    votes: Bool[Tensor, "repeats height width"],
    importance: Map,
    uncertainty: Map,
    *,
    note: str,
) -> Figure:
    """Some of the runs from left to right, the last of them among them, and the two maps that all of them make."""
    runs = len(maps)
    shown = list(range(runs)) if runs <= SHOWN else [*range(SHOWN - 1), runs - 1]
    tall, result = height_of(photo, RUN), height_of(photo, RESULT)
    body = max(len(shown) * (tall + CLOSE) - CLOSE + BAR, 2 * (result + BAR) + FAR)
    canvas = Canvas.of(WIDE, HEADS + body + NOTE)
    lefts = [MARGIN]
    for width in (IMAGE, RUN, COUNTS, RUN):
        lefts.append(lefts[-1] + width + GAP)
    middle, pitch = HEADS + (body - BAR) / 2, (body - BAR - tall) / max(1, len(shown) - 1)
    for left, width, head, line in zip(
        lefts[1:4],
        (RUN, COUNTS, RUN),
        ("importance  R(k)", "histogram, cut  τ(k)", "votes  I(k)"),
        (f"{runs} runs of RELAX", "pixels of each map", "1 where R(k) ≥ τ(k)"),
        strict=True,
    ):
        _head(canvas, left + width / 2, HEADS, head, line)

    square = height_of(photo, IMAGE)
    draw_bare(canvas.axes(lefts[0], middle - square / 2, IMAGE, square), photo)
    _head(canvas, lefts[0] + IMAGE / 2, middle - square / 2 + 0.14, "image", "")
    limits = (maps.min().item(), maps.max().item())
    for place, run in enumerate(shown):
        top = HEADS + pitch * place if len(shown) > 1 else middle - tall / 2
        centre = top + tall / 2
        panel = canvas.axes(lefts[1], top, RUN, tall)
        draw_map(panel, photo, maps[run], IMPORTANCE, limits)
        panel.set_ylabel(f"k = {run + 1}", fontsize=SMALL, labelpad=2)
        counts = canvas.axes(lefts[2], top, COUNTS, tall)
        _draw_counts(counts, maps[run], cuts[run].item(), limits)
        counts.tick_params(labelbottom=place == len(shown) - 1)
        ballot = canvas.axes(lefts[3], top, RUN, tall)
        draw_map(ballot, photo, votes[run].double(), ListedColormap([NO, YES]), SHARE)
        canvas.arrow((lefts[0] + IMAGE + 0.04, middle), (lefts[1] - 0.17, centre))
        for column, width in ((1, RUN), (2, COUNTS)):
            canvas.arrow((lefts[column] + width + 0.05, centre), (lefts[column + 1] - 0.05, centre))
        canvas.arrow((lefts[3] + RUN + 0.04, centre), (lefts[4] - 0.05, HEADS + result / 2))
    if runs > SHOWN:
        for left, width in zip(lefts[1:4], (RUN, COUNTS, RUN), strict=True):
            canvas.text(left + width / 2, HEADS + pitch * 1.5 + tall / 2, "⋮", size=HEADING, colour=GREY)

    both = (
        ("importance  p", "mean of the votes", importance, IMPORTANCE, SHARE),
        ("uncertainty", "p(1 − p), their variance", uncertainty, UNCERTAINTY, VARIANCE),
    )
    top = HEADS
    for name, line, values, colours, ends in both:
        drawn = draw_map(canvas.axes(lefts[4], top, RESULT, result), photo, values, colours, ends)
        _head(canvas, lefts[4] + RESULT / 2, top, name, line)
        canvas.bar(drawn, values, (lefts[4], top + result + 0.05, RESULT), list(ends))
        top = HEADS + body - BAR - result
    canvas.note(note)
    return canvas.figure


def _head(canvas: Canvas, centre: float, top: float, name: str, line: str) -> None:
    """What stands above a panel."""
    canvas.text(centre, top - 0.28, name, size=HEADING)
    canvas.text(centre, top - 0.11, line, size=SMALL, colour=GREY)


def _draw_counts(axes: Axes, values: Map, cut: float, limits: tuple[float, float]) -> None:
    """Pixels by their importance, told apart by the cut."""
    flat = values.flatten()
    sides = [flat[flat < cut].numpy(), flat[flat >= cut].numpy()]
    axes.hist(sides, BINS, range=limits, histtype="stepfilled", stacked=True, color=[NO, YES])
    axes.axvline(cut, ymax=BELOW, color="black", linewidth=1)
    axes.annotate(f"τ = {cut:#.4g}", (1, 1), xycoords="axes fraction", ha="right", va="top", fontsize=SMALL)
    axes.set(xlim=limits, ylim=(0, axes.get_ylim()[1] / BELOW), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.tick_params(labelsize=SMALL, length=2, pad=1.5)
    axes.spines[["top", "right", "left"]].set_visible(False)
