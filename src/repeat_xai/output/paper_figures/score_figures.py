"""Figures of the scores of many images: histograms by method, similarities, and how well poisoned images are found."""

from __future__ import annotations

from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from repeat_xai.experiments.paper.figure_data import MaskedSimilarities, OodScores, PoisonScores
from repeat_xai.output.figures.captions import title_of_class
from repeat_xai.output.figures.curves import LINES, STYLES, draw_histograms, histograms_by_method, similarities
from repeat_xai.output.figures.figure_files import SilentFigure
from repeat_xai.output.paper_figures.canvas import COLUMN_WIDTH, FULL_WIDTH, GREY, HEADING, LABEL, SMALL, note_text


def ood_histograms(data: OodScores) -> Figure:
    """Draw the uncertainty of both datasets' images by every method, with its AUROC in the title."""
    panels = {f"{title_of_class(method.method)}\nAUROC {method.area:.2f}": method.scores for method in data.methods}
    figure = histograms_by_method(panels, name="mean uncertainty of an image")
    return _set_in_paper_type(figure, note_text(data.source.encoder, data.source.budget), width=FULL_WIDTH)


def similarity_histogram(data: MaskedSimilarities) -> Figure:
    """Draw a histogram of the similarities between images and their masked copies."""
    figure = similarities(data.similarities, low=data.low, high=data.high)
    return _set_in_paper_type(figure, note_text(*data.source), width=COLUMN_WIDTH)


def poison_histograms(data: PoisonScores) -> Figure:
    """Draw a histogram for each map's scores with the mixture fitted to them, and the mixtures' ROC curves."""
    figure = SilentFigure(figsize=(FULL_WIDTH, 2.6), layout="constrained")
    grid = figure.add_gridspec(1, len(data.scores) + 1)
    for place, (name, groups) in enumerate(data.scores.items()):
        axes = figure.add_subplot(grid[place])
        draw_histograms(axes, groups, data.mixtures.get(name))
        axes.set_title(f"mean {name}")
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.set_ylabel("images" if place == 0 else "")
    right = figure.add_subplot(grid[len(data.scores)], aspect="equal")
    right.plot((0, 1), (0, 1), color="#B0B0B0", linewidth=1, linestyle="--")
    for (name, curve), colour, style in zip(data.curves.items(), cycle(LINES), cycle(STYLES), strict=False):
        shares = (curve.false.numpy(), curve.true.numpy())
        right.plot(*shares, style, color=colour, linewidth=1.5, label=f"{name}, AUROC {curve.area:.2f}", clip_on=False)
    right.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    right.spines[["top", "right"]].set_visible(False)
    right.set_title("ROC of the mixture")
    right.set_xlabel("clean called poisoned")
    right.set_ylabel("poisoned found")
    kinds, curves = (axes.get_legend_handles_labels() for axes in (figure.axes[0], right))
    handles, labels = kinds[0] + curves[0], kinds[1] + curves[1]
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=SMALL)
    return _set_in_paper_type(figure, note_text(*data.source), width=FULL_WIDTH)


def _set_in_paper_type(figure: Figure, text: str, *, width: float) -> Figure:
    """Give a figure of curves the width and the type of the figures of maps, and write the note above it."""
    old_width, height = figure.get_size_inches()
    figure.set_size_inches(width, height * width / old_width)
    for axes in figure.axes:
        axes.title.set_fontsize(HEADING)
        axes.xaxis.label.set_fontsize(LABEL)
        axes.yaxis.label.set_fontsize(LABEL)
        axes.tick_params(labelsize=SMALL)
    if not figure.legends:
        figure.suptitle(text, fontsize=SMALL, color=GREY)
    for legend in figure.legends:  # a legend stands above the axes, where the note would be: the note becomes its title
        legend.set_title(text, prop=FontProperties(size=SMALL))
        legend.get_title().set_color(GREY)
    return figure
