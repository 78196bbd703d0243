"""A figure whose parts are placed in inches, so that panels line up and nothing overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.experiments.paper.figure_request import FigureSource
from repeat_xai.output.figures.captions import short_name
from repeat_xai.output.figures.figure_files import SilentFigure, without_glyph_warnings
from repeat_xai.output.figures.map_drawing import add_colour_bar
from repeat_xai.types import Photo

FULL_WIDTH, COLUMN_WIDTH = 7.0, 4.5
"""Inches that a figure is wide: across a page of two columns, or in one of them, where it is set a quarter smaller."""
HEADING, LABEL, SMALL = 9.0, 8.0, 7.0
"""Font sizes in points."""
GREY = "#555555"
MARGIN = 0.1
HEADING_HEIGHT, NOTE_HEIGHT, BAR_HEIGHT = 0.2, 0.22, 0.3
"""Inches for a line above a panel, for the note at the bottom, and for a colour bar with its numbers."""
MIN_ASPECT, MAX_ASPECT = 0.65, 1.5
"""Limits of a panel's height by its width; a photo of another shape does not fill its panel."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Canvas:
    """A figure on which places are given in inches from the left and from the top."""

    figure: Figure
    width: float
    height: float

    @staticmethod
    def of(width: float, height: float) -> Canvas:
        """Return an empty canvas of this size."""
        return Canvas(figure=SilentFigure(figsize=(width, height)), width=width, height=height)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes with this upper left corner and this size."""
        bottom = self.height - top - height
        shares = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(shares)

    def text(
        self,
        left: float,
        top: float,
        text: str,
        *,
        size: float = LABEL,
        colour: str = "black",
        anchor: str = "center",
        weight: str = "normal",
    ) -> None:
        """Write a line of text centred on this place; `anchor` says which of its points lies there."""
        x, y = self._fraction(left, top)
        line = self.figure.text(x, y, text, fontsize=size, color=colour, ha=anchor, fontweight=weight)
        line.set(verticalalignment="center", parse_math=False)

    def vertical_text(self, left: float, top: float, text: str) -> None:
        """Write a line of text that runs upwards."""
        x, y = self._fraction(left, top)
        self.figure.text(x, y, text, fontsize=LABEL, ha="center", va="center", rotation=90)

    def note(self, text: str) -> None:
        """Write a note at the bottom, in type so small that it fits into one line."""
        available = 72 * (self.width - 2 * MARGIN)
        with without_glyph_warnings():
            literal = text.replace("$", r"\$")  # a dollar in the name of a photo does not begin a formula
            needed = TextPath((0, 0), literal, size=SMALL).get_extents().width
        size = SMALL * min(1.0, available / needed)
        self.text(MARGIN, self.height - NOTE_HEIGHT / 2, text, size=size, colour=GREY, anchor="left")

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draw an arrow from one place to another."""
        self.figure.add_artist(
            FancyArrowPatch(
                self._fraction(*start),
                self._fraction(*end),
                transform=self.figure.transFigure,
                arrowstyle="-|>",
                mutation_scale=7,
                linewidth=0.8,
                color=GREY,
                shrinkA=0,
                shrinkB=0,
            )
        )

    def line(
        self, left: float, right: float, top: float, *, colour: str = GREY, style: str = "-", width: float = 0.6
    ) -> None:
        """Draw a horizontal line."""
        xs, ys = zip(self._fraction(left, top), self._fraction(right, top), strict=True)
        line = Line2D(xs, ys, color=colour, linewidth=width)
        line.set(linestyle=style)
        self.figure.add_artist(line)

    def colour_bar(
        self,
        drawn: ScalarMappable,
        values: Tensor,
        place: tuple[float, float, float],
        ticks: list[float] | None = None,
    ) -> None:
        """Draw the colour bar of a map; `place` is its left, its top and its width."""
        left, top, width = place
        axes = self.axes(left, top, width, 0.06)
        low, high = drawn.get_clim()
        ticks = ticks or [tick for tick in MaxNLocator(2).tick_values(low, high) if low <= tick <= high]
        add_colour_bar(self.figure, drawn, axes, values, ticks)
        axes.tick_params(labelsize=SMALL, length=2, pad=1.5)
        for tick, label in zip(ticks, axes.get_xticklabels(), strict=True):
            share = (tick - low) / (
                high - low
            )  # numbers at the ends are aligned inwards: they must not touch a neighbour's
            label.set_horizontalalignment("left" if share < 0.15 else "right" if share > 0.85 else "center")

    def _fraction(self, left: float, top: float) -> tuple[float, float]:
        """Return a place as Matplotlib counts it: in fractions of the figure, from the lower left."""
        return left / self.width, 1 - top / self.height


def panel_height(photo: Photo, width: float) -> float:
    """Return the height at which a photo fills a panel of this width."""
    rows, columns = photo.size
    return width * min(max(rows / columns, MIN_ASPECT), MAX_ASPECT)


def note_text(*parts: str) -> str:
    """Return the parts of a note in one line; empty ones are left out."""
    return "  ·  ".join(part for part in parts if part)


def photo_note_text(source: FigureSource, photo: Photo) -> str:
    """Return the note of a figure of one photo: its dataset and name, the encoder and the budget."""
    return note_text(f"{source.dataset}, {short_name(photo, 30)}", source.encoder, source.budget)
