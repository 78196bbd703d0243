"""Numbers of many images → histograms and curves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.engine.mask_bounds import SimilarityRange
from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics import Calibration
from repeat_xai.metrics.detection import Mixture, Roc

if TYPE_CHECKING:
    from jaxtyping import Float

    Scores = Mapping[str, Float[Tensor, " images"]]

KNOWN = "#009E73"
COLOURS = (KNOWN, "#D55E00", "#CC79A7", "#E69F00")
"""Green for what is known, red and others for what is not; Okabe and Ito's, which the colour-blind tell apart."""
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
"""Outlines and curves differ by these too, so that they can be told apart without any colour."""
ROOM = 1.6
"""How far above the tallest bar a mixture is drawn: one of few images has a spike."""
ACROSS = 3
"""Methods on a row."""


def histograms(groups: Scores, split: Mixture | None = None, *, name: str = "uncertainty of an image") -> Figure:
    """Scores of several datasets over each other, the known one first, and the mixture of all where there is one."""
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    _draw_histograms(axes, groups, split)
    axes.set_xlabel(name, fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    if split is not None:
        figure.suptitle(fill(split.statement, 64), fontsize=8, color="#444444")
    return figure


def histograms_by_method(
    methods: Mapping[str, Scores],
    splits: Mapping[str, Mixture] | None = None,
    *,
    name: str = "uncertainty of an image",
) -> Figure:
    """The same datasets by several methods, each on its own scale: the paper's figure of all methods."""
    if not methods:
        raise ConfigurationError("there are no methods to draw")
    columns = min(ACROSS, len(methods))
    rows = -(-len(methods) // columns)
    figure = Figure(figsize=(3.1 * columns, 2.4 * rows + 0.5), layout="constrained")
    for number, (method, groups) in enumerate(methods.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        _draw_histograms(axes, groups, (splits or {}).get(method))
        axes.set_title(method, fontsize=9, parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if number % columns != 1 % columns:
            axes.set_ylabel("")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel(name, fontsize=9)
    return figure


def roc(curves: Mapping[str, Roc]) -> Figure:
    """How many unknown images are found at the price of how many false alarms."""
    figure = Figure(figsize=(4.4, 4.6 + 0.17 * len(curves)), layout="constrained")
    axes = _square(figure)
    for (name, curve), colour, style in zip(curves.items(), cycle(LINES), cycle(STYLES), strict=False):
        shares = (curve.false.numpy(), curve.true.numpy())
        axes.plot(*shares, style, color=colour, linewidth=1.6, label=f"{name}  {curve.area:.3f}", clip_on=False)
    axes.set_xlabel("known images called unknown", fontsize=9)
    axes.set_ylabel("unknown images found", fontsize=9)
    figure.legend(title="AUROC", loc="outside lower center", frameon=False, fontsize=8, title_fontsize=8)
    return figure


def reliability(found: Calibration) -> Figure:
    """Shares of votes as stated and as fresh repeats give them; a disc's area is its bin's share of pixels."""
    figure = Figure(figsize=(4.4, 4.4), layout="constrained")
    axes = _square(figure)
    there = found.pixels.numpy() > 0
    stated, seen, pixels = (values.numpy()[there] for values in (found.stated, found.observed, found.pixels))
    axes.plot(stated, seen, color="#0072B2", linewidth=1.2)
    axes.scatter(stated, seen, s=1500 * pixels, color="#0072B2", alpha=0.45, linewidths=0, clip_on=False)
    axes.scatter(stated, seen, s=5, color="#0072B2", clip_on=False, zorder=3)
    axes.annotate("stated too low", (0.03, 0.97), va="top", fontsize=8, color="#777777")
    axes.annotate("stated too high", (0.97, 0.03), ha="right", fontsize=8, color="#777777")
    axes.set_xlabel("share of votes stated", fontsize=9)
    axes.set_ylabel("share of fresh votes", fontsize=9)
    axes.set_title(f"calibration error {found.error:.3f}  ·  Brier score {found.brier:.4f}", fontsize=9)
    return figure


def similarities(measured: SimilarityRange) -> Figure:
    """Histogram of similarities between images and their masked copies: the paper's appendix figure 1."""
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(measured.similarities.flatten().numpy(), bins=100, color="#0072B2")
    for value, name in ((measured.low, "least"), (measured.high, "most")):
        axes.axvline(value, color="#D55E00", linewidth=1)
        axes.annotate(
            f"{name} {value:.3f}",
            (value, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            rotation=90,
            va="top",
            fontsize=8,
        )
    images, masks = measured.similarities.shape
    axes.set(xlabel="similarity  s(h, h̄)", ylabel="masks", title=f"{images} images × {masks} masks")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_histograms(axes: Axes, groups: Scores, split: Mixture | None) -> None:
    """Counts, so that the mixture, of all images together, lies over their sum."""
    rows = {name: scores.numpy() for name, scores in groups.items()}
    together = np.concatenate([*rows.values()]) if rows else np.empty(0)
    if not len(together) or not np.isfinite(together).all():
        raise ConfigurationError("there are no scores to draw, or some are NaN or infinite")
    edges = np.histogram_bin_edges(together, bins=min(40, max(8, len(together) // 6)))
    for (name, row), colour, style in zip(rows.items(), cycle(COLOURS), cycle(STYLES), strict=False):
        axes.hist(
            row,
            edges.tolist(),
            histtype="stepfilled",
            facecolor=(colour, 0.4),
            edgecolor=colour,
            linestyle=style,
            linewidth=1.3,
            label=f"{name} ({len(row)})",
        )
    if split is not None and split.separates:
        places = np.linspace(edges[0], edges[-1], 400)
        weight = len(together) * (edges[1] - edges[0])
        for kind in (0, 1):
            axes.plot(places, weight * split.density(places, kind), color="#444444", linewidth=1)
        tallest = max(np.histogram(row, edges)[0].max() for row in rows.values())
        axes.set_ylim(0, min(axes.get_ylim()[1], ROOM * tallest))
        if split.threshold is not None:
            axes.axvline(split.threshold, color="#444444", linewidth=0.8, linestyle=":")
    axes.set_ylabel("images", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.get_offset_text().set_fontsize(8)


def _square(figure: Figure) -> Axes:
    """From 0 to 1 both ways, with the diagonal."""
    axes = figure.add_subplot()
    axes.plot((0, 1), (0, 1), color="#B0B0B0", linewidth=1, linestyle="--")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.25, 0.5, 0.75, 1], yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return axes
