"""Explanations → figures. Nothing is computed here; colours read the same to the colour-blind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.budget import SimilarityRange
from repeat_xai.detect import Mixture
from repeat_xai.types import Explanation, Photo

IMPORTANCE, UNCERTAINTY = "viridis", "magma"
SIGNED = "PuOr_r"
"""For importance that may be below zero, which is where its colours meet."""
FEW = MaxNLocator(4)
"""As many marks on a scale as have room."""
TITLES = {
    "Repeat": "REPEAT",
    "Relax": "RELAX",
    "GuidedBackprop": "Guided backpropagation",
    "IntegratedGradients": "Integrated gradients",
    "InputXGradient": "Input × gradient",
    "GradientShap": "GradientSHAP",
    "KernelShap": "Kernel SHAP",
    "Lime": "LIME",
}
VERDICTS = ("certainly\nunimportant", "undecided", "certainly\nimportant")
VERDICT_COLOURS = ListedColormap(["#0072B2", "#F0F0F0", "#D55E00"])


def panel(explanation: Explanation, *, level: float = 0.95) -> Figure:
    """Photo, importance, uncertainty and verdict side by side, each map on its own scale."""
    photo = explanation.photo
    height, width = photo.size
    side = 3.0
    tall = min(max(side * height / width, 1.2), 6.0)
    figure = Figure(figsize=(4 * side + 0.6, tall + 1.15), layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(tall, 0.11))
    pictures = [figure.add_subplot(grid[0, i]) for i in range(4)]
    bars = [figure.add_subplot(grid[1, i]) for i in range(1, 4)]
    figure.suptitle(_caption(explanation), fontsize=8, color="#444444", parse_math=False)

    _draw_photo(pictures[0], photo)
    votes = explanation.vote_share is not None
    colours, limits = _scale(explanation.importance, votes=votes)
    drawn = _draw_map(pictures[1], photo, explanation.importance, colours, limits)
    pictures[1].set_title("importance  p" if votes else "importance  R", fontsize=10)
    _bar(figure, drawn, bars[0], explanation.importance, [0.0, 0.5, 1.0] if votes else FEW)
    range_ = (0.0, 0.25) if votes else _most_of(explanation.uncertainty)
    spread = _draw_map(pictures[2], photo, explanation.uncertainty, UNCERTAINTY, range_)
    pictures[2].set_title("uncertainty  p(1 − p)" if votes else "uncertainty  U", fontsize=10)
    _bar(figure, spread, bars[1], explanation.uncertainty, [0.0, 0.125, 0.25] if votes else FEW)
    if votes:
        verdict = _draw_verdict(pictures[3], photo, explanation.verdict(level))
        pictures[3].set_title(f"verdict at {100 * level:g} % of the votes", fontsize=10)
        bar = figure.colorbar(verdict, cax=bars[2], orientation="horizontal", ticks=[-1, 0, 1])
        bar.ax.set_xticklabels(VERDICTS)
    else:
        unsure = explanation.uncertainty > explanation.uncertainty.median()
        certain = explanation.importance.masked_fill(unsure, torch.nan)
        shown = _draw_map(pictures[3], photo, certain, colormaps[colours].with_extremes(bad="white"), limits)
        pictures[3].set_title("importance where U ≤ median", fontsize=10)
        _bar(figure, shown, bars[2], explanation.importance, FEW)
    for bar_axes in bars:
        bar_axes.tick_params(labelsize=8)
    return figure


def comparison(explanations: Sequence[Explanation]) -> Figure:
    """One photo by several methods, a column each: importance above, uncertainty below, every map on its own scale."""
    photo = explanations[0].photo
    side, columns = 2.2, len(explanations)
    tall = min(max(side * photo.size[0] / photo.size[1], 0.9), 4.4)
    figure = Figure(figsize=((columns + 1) * side + 0.4, 2 * tall + 1.5), layout="constrained")
    grid = figure.add_gridspec(4, columns + 1, height_ratios=(tall, 0.07, tall, 0.07))
    first = figure.add_subplot(grid[0, 0])
    _draw_photo(first, photo)
    first.set_title("photo", fontsize=9)
    figure.suptitle(_subject(explanations[0]), fontsize=8, color="#444444", parse_math=False)
    for column, explanation in enumerate(explanations, start=1):
        votes = explanation.vote_share is not None
        for row, values in ((0, explanation.importance), (2, explanation.uncertainty)):
            axes = figure.add_subplot(grid[row, column])
            colours, limits = _scale(values, votes=votes) if row == 0 else (UNCERTAINTY, (0.0, 0.25))
            drawn = _draw_map(axes, photo, values, colours, limits if votes or row == 0 else _most_of(values))
            bar_axes = figure.add_subplot(grid[row + 1, column])
            _bar(figure, drawn, bar_axes, values, list(limits) if votes else MaxNLocator(2))
            bar_axes.tick_params(labelsize=7)
            if row == 0:
                axes.set_title("\n".join((title(explanation), "  ·  ".join(_budget(explanation)))), fontsize=8)
            if column == 1:
                axes.set_ylabel(("importance", "uncertainty")[row // 2], fontsize=9)
    return figure


def title(explanation: Explanation) -> str:
    """The method in words, such as `REPEAT` or `REPEAT over Kernel SHAP`."""
    method = explanation.provenance["method"]
    outer, inner = _words(method), _words(method.get("base", ""))
    if method["name"] == "Spread":
        return inner
    return outer if inner in ("", "RELAX") else f"{outer} over {inner}"


def contact_sheet(
    most: Sequence[tuple[Photo, float]],
    least: Sequence[tuple[Photo, float]],
    scores: Sequence[float],
    split: Mixture | None,
) -> Figure:
    """The most and the least uncertain images, and where all of them lie."""
    columns = len(most)
    figure = Figure(figsize=(1.7 * columns + 0.4, 6.2), layout="constrained")
    grid = figure.add_gridspec(3, columns, height_ratios=(1, 1, 1.1))
    for row, (name, some) in enumerate((("most uncertain", most), ("least uncertain", least))):
        for column, (photo, score) in enumerate(some):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(photo.picture)
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"{_name(photo, 18)}\n{score:.4g}", fontsize=7, parse_math=False)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
    below = figure.add_subplot(grid[2, :])
    below.hist(scores, bins=min(40, max(5, len(scores) // 4)), density=True, color="#B0B0B0")
    if split is not None and split.separates:
        for kind, colour in enumerate(("#0072B2", "#D55E00")):
            places = split.means[kind] + split.deviations[kind] * np.linspace(-4, 4, 200)
            below.plot(places, split.density(places, kind), color=colour, linewidth=1.5)
    below.set(xlabel="uncertainty of an image", yticks=[])
    below.spines[["top", "left", "right"]].set_visible(False)
    figure.suptitle(split.statement if split else f"{len(scores)} images", fontsize=9, color="#444444")
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


def _words(method: dict[str, Any] | str) -> str:
    name = method if isinstance(method, str) else method["name"]
    if isinstance(method, dict) and method.get("moment") == "variance":
        return "VarGrad"
    against = " to a reference" if isinstance(method, dict) and method.get("reference") else ""
    return TITLES.get(name, name) + against


def _scale(importance: Tensor, *, votes: bool) -> tuple[str, tuple[float, float]]:
    """Colours and limits for importance: a share of votes, a magnitude, or a number that may be below zero."""
    if votes:
        return IMPORTANCE, (0.0, 1.0)
    if importance.min() >= 0:
        return IMPORTANCE, _most_of(importance)
    most = _most_of(importance.abs())[1]
    return SIGNED, (-most, most)


def _bar(figure: Figure, drawn: ScalarMappable, axes: Axes, values: Tensor, ticks: list[float] | MaxNLocator) -> None:
    """A colour bar, with an arrow where values lie beyond its end."""
    low, high = drawn.get_clim()
    beyond = (values.min().item() < low, values.max().item() > high)
    extend = {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[beyond]
    figure.colorbar(drawn, cax=axes, orientation="horizontal", ticks=ticks, format="%.3g", extend=extend)


def _most_of(values: Tensor) -> tuple[float, float]:
    """A scale that a few extreme pixels do not stretch."""
    return values.min().item(), values.flatten().double().quantile(0.995).item()


def _subject(explanation: Explanation) -> str:
    return f"{_name(explanation.photo, 60)}  ·  {explanation.provenance['encoder']['name']}"


def _name(photo: Photo, longest: int) -> str:
    name = Path(photo.name).name.encode(errors="replace").decode()
    return shorten(name, longest, placeholder="…") or f"{name[:longest]}…"


def _caption(explanation: Explanation) -> str:
    return "  ·  ".join((_subject(explanation), title(explanation), *_budget(explanation)))


def _budget(explanation: Explanation) -> list[str]:
    """What the method was given to work with."""
    made = explanation.provenance
    method = made["method"]
    base = method.get("base", method)
    if "pool" in made:
        return [f"estimated from a pool of {made['pool']['masks']} masks"]
    given = method | (base if isinstance(base, dict) else {})
    return [f"{kind} {given[kind]}" for kind in ("repeats", "passes", "masks", "samples", "steps") if kind in given]


def _draw_photo(axes: Axes, photo: Photo) -> None:
    height, width = photo.size
    axes.imshow(photo.picture, extent=(0, width, height, 0), interpolation="antialiased")
    left, top, right, bottom = photo.box
    whole = (left, top, right, bottom) == (0, 0, width, height)
    if not whole:
        frame = Rectangle(
            (left, top), right - left, bottom - top, fill=False, edgecolor="white", linewidth=1.2, linestyle="--"
        )
        axes.add_patch(frame)
    axes.set_title("photo" if whole else "photo, with what the encoder sees", fontsize=10)
    _frame(axes, photo)


def _draw_map(
    axes: Axes, photo: Photo, values: Tensor, colours: str | Colormap, limits: tuple[float, float] | None
) -> ScalarMappable:
    left, top, right, bottom = photo.box
    low, high = limits or (None, None)
    _draw_unseen(axes, photo)
    drawn = axes.imshow(values.numpy(), cmap=colours, vmin=low, vmax=high, extent=(left, right, bottom, top))
    _frame(axes, photo)
    return drawn


def _draw_verdict(axes: Axes, photo: Photo, verdict: Tensor) -> ScalarMappable:
    left, top, right, bottom = photo.box
    norm = BoundaryNorm([-1.5, -0.5, 0.5, 1.5], 3)
    _draw_unseen(axes, photo)
    drawn = axes.imshow(
        verdict.numpy(), cmap=VERDICT_COLOURS, norm=norm, interpolation="nearest", extent=(left, right, bottom, top)
    )
    _frame(axes, photo)
    return drawn


def _draw_unseen(axes: Axes, photo: Photo) -> None:
    """The photo, faint, to show where the map lies, and the map's edge."""
    height, width = photo.size
    left, top, right, bottom = photo.box
    axes.imshow(photo.picture, extent=(0, width, height, 0), alpha=0.25)
    axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="#444444", linewidth=1))


def _frame(axes: Axes, photo: Photo) -> None:
    height, width = photo.size
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], aspect="equal", facecolor="white")
