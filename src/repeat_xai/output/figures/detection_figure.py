"""Two kinds of image by several scores: a histogram each, and how well each score tells them apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from repeat_xai.metrics.detection import Mixture, Roc
from repeat_xai.output.figures.canvas import SMALL, WIDE, in_small_print
from repeat_xai.output.figures.curves import LINES, STYLES, _draw_histograms

if TYPE_CHECKING:
    from repeat_xai.output.figures.curves import Scores


def told_apart(
    scores: Mapping[str, Scores], splits: Mapping[str, Mixture], curves: Mapping[str, Roc], *, note: str
) -> Figure:
    """A histogram for each score with the mixture fitted to it, and the ROC curves of those mixtures."""
    figure = Figure(figsize=(WIDE, 2.6), layout="constrained")
    grid = figure.add_gridspec(1, len(scores) + 1)
    for place, (name, groups) in enumerate(scores.items()):
        axes = figure.add_subplot(grid[place])
        _draw_histograms(axes, groups, splits.get(name))
        axes.set_title(f"mean {name}")
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.set_ylabel("images" if place == 0 else "")
    right = figure.add_subplot(grid[len(scores)], aspect="equal")
    right.plot((0, 1), (0, 1), color="#B0B0B0", linewidth=1, linestyle="--")
    for (name, curve), colour, style in zip(curves.items(), cycle(LINES), cycle(STYLES), strict=False):
        shares = (curve.false.numpy(), curve.true.numpy())
        right.plot(*shares, style, color=colour, linewidth=1.5, label=f"{name}, AUROC {curve.area:.2f}", clip_on=False)
    right.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    right.spines[["top", "right"]].set_visible(False)
    right.set_title("ROC of the mixture")
    right.set_xlabel("clean called poisoned")
    right.set_ylabel("poisoned found")
    kinds, names = (axes.get_legend_handles_labels() for axes in (figure.axes[0], right))
    handles, labels = kinds[0] + names[0], kinds[1] + names[1]
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=SMALL)
    return in_small_print(figure, note, width=WIDE)
