"""Histograms and curves of scores of many images."""

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

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics import Calibration
from repeat_xai.metrics.detection import Mixture, Roc
from repeat_xai.output.figures.figure_files import SilentFigure

if TYPE_CHECKING:
    from jaxtyping import Float

    Scores = Mapping[str, Float[Tensor, " images"]]

KNOWN = "#009E73"
COLOURS = (KNOWN, "#D55E00", "#CC79A7", "#E69F00")
"""Green for the known dataset, orange and others for unknown ones; by Okabe and Ito, for colour-blind readers too."""
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":")
"""Styles of outlines and curves, so that they differ without any colour too."""
MIXTURE_HEADROOM = 1.6
"""The height of the axes by that of the tallest bar, at most: the mixture of few images may have a spike far above."""
METHODS_PER_ROW = 3


def histograms(groups: Scores, mixture: Mixture | None = None, *, name: str = "uncertainty of an image") -> Figure:
    """Draw the scores of several datasets over each other, the known one first, with the mixture fitted to all."""
    figure = SilentFigure(figsize=(5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    draw_histograms(axes, groups, mixture)
    axes.set_xlabel(name, fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    if mixture is not None:
        figure.suptitle(fill(mixture.statement, 64), fontsize=8, color="#444444")
    return figure


def histograms_by_method(
    methods: Mapping[str, Scores],
    mixtures: Mapping[str, Mixture] | None = None,
    *,
    name: str = "uncertainty of an image",
) -> Figure:
    """Draw the scores of the same datasets by several methods, each method on its own scale."""
    if not methods:
        raise ConfigurationError("there are no methods to draw")
    columns = min(METHODS_PER_ROW, len(methods))
    rows = -(-len(methods) // columns)
    figure = SilentFigure(figsize=(3.1 * columns, 2.4 * rows + 0.5), layout="constrained")
    for number, (method, groups) in enumerate(methods.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        draw_histograms(axes, groups, (mixtures or {}).get(method))
        axes.set_title(method, fontsize=9, parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if number % columns != 1 % columns:
            axes.set_ylabel("")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel(name, fontsize=9)
    return figure


def roc(curves: Mapping[str, Roc]) -> Figure:
    """Draw ROC curves: the share of unknown images found, over the share of known images called unknown."""
    figure = SilentFigure(figsize=(4.4, 4.6 + 0.17 * len(curves)), layout="constrained")
    axes = _unit_square(figure)
    for (name, curve), colour, style in zip(curves.items(), cycle(LINES), cycle(STYLES), strict=False):
        shares, label = (curve.false.numpy(), curve.true.numpy()), legend_text(f"{name}  {curve.area:.3f}")
        axes.plot(*shares, style, color=colour, linewidth=1.6, label=label, clip_on=False)
    axes.set_xlabel("known images called unknown", fontsize=9)
    axes.set_ylabel("unknown images found", fontsize=9)
    figure.legend(title="AUROC", loc="outside lower center", frameon=False, fontsize=8, title_fontsize=8)
    return figure


def reliability(calibration: Calibration) -> Figure:
    """Draw the shares of votes in fresh repeats over those stated; a disc's area is its bin's share of pixels."""
    figure = SilentFigure(figsize=(4.4, 4.4), layout="constrained")
    axes = _unit_square(figure)
    bins = (calibration.stated, calibration.observed, calibration.pixels)
    stated, seen, pixels = (values.numpy()[calibration.pixels.numpy() > 0] for values in bins)
    axes.plot(stated, seen, color="#0072B2", linewidth=1.2)
    axes.scatter(stated, seen, s=1500 * pixels, color="#0072B2", alpha=0.45, linewidths=0, clip_on=False)
    axes.scatter(stated, seen, s=5, color="#0072B2", clip_on=False, zorder=3)
    axes.annotate("stated too low", (0.03, 0.97), va="top", fontsize=8, color="#777777")
    axes.annotate("stated too high", (0.97, 0.03), ha="right", fontsize=8, color="#777777")
    axes.set_xlabel("share of votes stated", fontsize=9)
    axes.set_ylabel("share of fresh votes", fontsize=9)
    axes.set_title(f"calibration error {calibration.error:.3f}  ·  Brier score {calibration.brier:.4f}", fontsize=9)
    return figure


def similarities(values: Float[Tensor, "images masks"], *, low: float, high: float) -> Figure:
    """Draw a histogram of similarities between images and their masked copies, and mark the least and the largest."""
    figure = SilentFigure(figsize=(5, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(values.flatten().numpy(), bins=100, color="#0072B2")
    for value, name in ((low, "least"), (high, "most")):
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
    images, masks = values.shape
    axes.set(xlabel="similarity  s(h, h̄)", ylabel="masks", title=f"{images} images × {masks} masks")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_histograms(axes: Axes, groups: Scores, mixture: Mixture | None) -> None:
    """Draw the number of images by their score for each dataset, and the mixture over the sum of all of them."""
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
            label=legend_text(f"{name} ({len(row)})"),
        )
    if mixture is not None and mixture.separates:
        places = np.linspace(edges[0], edges[-1], 400)
        weight = len(together) * (edges[1] - edges[0])
        for kind in (0, 1):
            axes.plot(places, weight * mixture.density(places, kind), color="#444444", linewidth=1)
        tallest = max(np.histogram(row, edges)[0].max() for row in rows.values())
        axes.set_ylim(0, min(axes.get_ylim()[1], MIXTURE_HEADROOM * tallest))
        if mixture.threshold is not None:
            axes.axvline(mixture.threshold, color="#444444", linewidth=0.8, linestyle=":")
    axes.set_ylabel("images", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.get_offset_text().set_fontsize(8)


def legend_text(text: str) -> str:
    """Return a label that a legend shows as this text: no `$` begins a formula, and no first `_` hides the entry."""
    literal = text.replace("$", r"\$")
    return f" {literal}" if literal.startswith("_") else literal


def _unit_square(figure: Figure) -> Axes:
    """Add axes from 0 to 1 both ways, with the diagonal."""
    axes = figure.add_subplot()
    axes.plot((0, 1), (0, 1), color="#B0B0B0", linewidth=1, linestyle="--")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 0.25, 0.5, 0.75, 1], yticks=[0, 0.25, 0.5, 0.75, 1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    return axes
