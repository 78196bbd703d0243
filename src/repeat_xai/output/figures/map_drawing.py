"""Functions that draw a photo, a map or a verdict on the axes of a figure, each with the scale that suits it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.types import Explanation, Photo

IMPORTANCE, UNCERTAINTY = "viridis", "magma"
SIGNED = "PuOr_r"
"""Colours for importance that may be negative: they meet at zero."""
VERDICT_COLOURS = ListedColormap(["#0072B2", "#F0F0F0", "#D55E00"])
VOTE_SHARE_LIMITS, VOTE_VARIANCE_LIMITS = (0.0, 1.0), (0.0, 0.25)
"""The ranges of a share of votes p, and of its variance p(1 − p)."""


def importance_scale(explanation: Explanation) -> tuple[str, tuple[float, float]]:
    """Return colours and limits for importance: a share of votes, a magnitude, or a number that may be negative."""
    importance = explanation.importance
    if explanation.vote_share is not None:
        return IMPORTANCE, VOTE_SHARE_LIMITS
    if importance.min() >= 0:
        return IMPORTANCE, robust_limits(importance)
    largest = robust_limits(importance.abs())[1]
    return SIGNED, (-largest, largest)


def uncertainty_limits(explanation: Explanation) -> tuple[float, float]:
    """Return limits for uncertainty: those of the variance of votes, or the map's own range."""
    return (
        VOTE_VARIANCE_LIMITS if explanation.vote_share is not None else robust_limits(explanation.required_uncertainty)
    )


def robust_limits(values: Tensor) -> tuple[float, float]:
    """Return the minimum and the 99.5th percentile, so that a few extreme pixels do not stretch the scale."""
    return values.min().item(), values.flatten().double().quantile(0.995).item()


def add_colour_bar(
    figure: Figure, drawn: ScalarMappable, axes: Axes, values: Tensor, ticks: list[float] | MaxNLocator
) -> None:
    """Draw a horizontal colour bar, with an arrow at each end beyond which there are values."""
    low, high = drawn.get_clim()
    beyond = (values.min().item() < low, values.max().item() > high)
    extend = {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[beyond]
    figure.colorbar(drawn, cax=axes, orientation="horizontal", ticks=ticks, format="%.3g", extend=extend)


def draw_photo(axes: Axes, photo: Photo, *, titled: bool = True) -> None:
    """Draw the whole photo, with a dashed frame around the part that the encoder sees if that is not all of it."""
    height, width = photo.size
    axes.imshow(photo.picture, extent=(0, width, height, 0), interpolation="antialiased")
    left, top, right, bottom = photo.box
    whole = (left, top, right, bottom) == (0, 0, width, height)
    if not whole:
        frame = Rectangle(
            (left, top), right - left, bottom - top, fill=False, edgecolor="white", linewidth=1.2, linestyle="--"
        )
        axes.add_patch(frame)
    if titled:
        axes.set_title("photo" if whole else "photo, with what the encoder sees", fontsize=10)
    _show_whole_photo(axes, photo)


def draw_map(
    axes: Axes, photo: Photo, values: Tensor, colours: str | Colormap, limits: tuple[float, float] | None
) -> ScalarMappable:
    """Draw a map over the part of the faint photo that the encoder sees; without limits, over its own range."""
    left, top, right, bottom = photo.box
    low, high = limits or (None, None)
    _draw_faint_photo(axes, photo)
    drawn = axes.imshow(values.numpy(), cmap=colours, vmin=low, vmax=high, extent=(left, right, bottom, top))
    _show_whole_photo(axes, photo)
    return drawn


def draw_importance(axes: Axes, explanation: Explanation) -> ScalarMappable:
    """Draw the importance: votes from 0 to 1, anything else over its own range."""
    colours, limits = importance_scale(explanation)
    return draw_map(axes, explanation.photo, explanation.importance, colours, limits)


def draw_uncertainty(axes: Axes, explanation: Explanation) -> ScalarMappable:
    """Draw the uncertainty: that of votes from 0 to ¼, any other over its own range."""
    limits = uncertainty_limits(explanation)
    return draw_map(axes, explanation.photo, explanation.required_uncertainty, UNCERTAINTY, limits)


def draw_verdict(axes: Axes, photo: Photo, verdict: Tensor) -> ScalarMappable:
    """Draw a verdict: blue where certainly unimportant, grey where undecided, orange where certainly important."""
    left, top, right, bottom = photo.box
    norm = BoundaryNorm([-1.5, -0.5, 0.5, 1.5], 3)
    _draw_faint_photo(axes, photo)
    drawn = axes.imshow(
        verdict.numpy(), cmap=VERDICT_COLOURS, norm=norm, interpolation="nearest", extent=(left, right, bottom, top)
    )
    _show_whole_photo(axes, photo)
    return drawn


def _draw_faint_photo(axes: Axes, photo: Photo) -> None:
    """Draw the photo faintly, and the edge of the map that will lie on it."""
    height, width = photo.size
    left, top, right, bottom = photo.box
    axes.imshow(photo.picture, extent=(0, width, height, 0), alpha=0.25)
    axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="#444444", linewidth=1))


def _show_whole_photo(axes: Axes, photo: Photo) -> None:
    """Set the axes to the edges of the photo."""
    height, width = photo.size
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], aspect="equal", facecolor="white")
