"""A map or a photo on its axes, and the scale that suits it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.types import Photo

IMPORTANCE, UNCERTAINTY = "viridis", "magma"
SIGNED = "PuOr_r"
"""For importance that may be below zero, which is where its colours meet."""
VERDICT_COLOURS = ListedColormap(["#0072B2", "#F0F0F0", "#D55E00"])


def scale(importance: Tensor, *, votes: bool) -> tuple[str, tuple[float, float]]:
    """Colours and limits for importance: a share of votes, a magnitude, or a number that may be below zero."""
    if votes:
        return IMPORTANCE, (0.0, 1.0)
    if importance.min() >= 0:
        return IMPORTANCE, most_of(importance)
    most = most_of(importance.abs())[1]
    return SIGNED, (-most, most)


def colour_bar(
    figure: Figure, drawn: ScalarMappable, axes: Axes, values: Tensor, ticks: list[float] | MaxNLocator
) -> None:
    """A colour bar, with an arrow where values lie beyond its end."""
    low, high = drawn.get_clim()
    beyond = (values.min().item() < low, values.max().item() > high)
    extend = {(True, True): "both", (True, False): "min", (False, True): "max", (False, False): "neither"}[beyond]
    figure.colorbar(drawn, cax=axes, orientation="horizontal", ticks=ticks, format="%.3g", extend=extend)


def most_of(values: Tensor) -> tuple[float, float]:
    """A scale that a few extreme pixels do not stretch."""
    return values.min().item(), values.flatten().double().quantile(0.995).item()


def draw_photo(axes: Axes, photo: Photo) -> None:
    """The photo, and where in it the encoder looks."""
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


def draw_map(
    axes: Axes, photo: Photo, values: Tensor, colours: str | Colormap, limits: tuple[float, float] | None
) -> ScalarMappable:
    """A map where the encoder looks, over the faint photo."""
    left, top, right, bottom = photo.box
    low, high = limits or (None, None)
    _draw_unseen(axes, photo)
    drawn = axes.imshow(values.numpy(), cmap=colours, vmin=low, vmax=high, extent=(left, right, bottom, top))
    _frame(axes, photo)
    return drawn


def draw_verdict(axes: Axes, photo: Photo, verdict: Tensor) -> ScalarMappable:
    """Blue, grey and red-orange: certainly not, undecided, certainly."""
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
