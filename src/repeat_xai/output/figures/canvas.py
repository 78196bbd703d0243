"""A page on which everything has its place in inches, so that panels line up and nothing overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.output.figures.map_drawing import colour_bar
from repeat_xai.types import Photo

WIDE, NARROW = 7.0, 4.5
"""Of a page of two columns, and of one column, in which a figure is set a quarter smaller."""
HEADING, LABEL, SMALL = 9.0, 8.0, 7.0
"""Sizes of type, in points."""
GREY = "#555555"
MARGIN = 0.1
HEAD, NOTE, BAR = 0.2, 0.22, 0.3
"""Room for a line above a panel, for the note below all of them, and for a scale with its numbers."""
SLIMMEST, TALLEST = 0.65, 1.5
"""Height of a panel by its width; a photo of another shape does not fill it."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Canvas:
    """Places are counted in inches from the left and from the top."""

    figure: Figure
    width: float
    height: float

    @staticmethod
    def of(width: float, height: float) -> Canvas:
        return Canvas(figure=Figure(figsize=(width, height)), width=width, height=height)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """A panel, with its corner here."""
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

    def text(
        self,
        left: float,
        top: float,
        words: str,
        *,
        size: float = LABEL,
        colour: str = "black",
        anchor: str = "center",
        weight: str = "normal",
    ) -> None:
        """Words around, or from, this place."""
        x, y = self._place(left, top)
        said = self.figure.text(x, y, words, fontsize=size, color=colour, ha=anchor, fontweight=weight)
        said.set(verticalalignment="center", parse_math=False)

    def aside(self, left: float, top: float, words: str) -> None:
        """Words that run upwards."""
        x, y = self._place(left, top)
        self.figure.text(x, y, words, fontsize=LABEL, ha="center", va="center", rotation=90)

    def note(self, words: str) -> None:
        """What was explained with what, in the last line, as small as it takes."""
        room = 72 * (self.width - 2 * MARGIN)
        size = SMALL * min(1.0, room / TextPath((0, 0), words, size=SMALL).get_extents().width)
        self.text(MARGIN, self.height - NOTE / 2, words, size=size, colour=GREY, anchor="left")

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """From here to there."""
        self.figure.add_artist(
            FancyArrowPatch(
                self._place(*start),
                self._place(*end),
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
        """A rule from left to right."""
        xs, ys = zip(self._place(left, top), self._place(right, top), strict=True)
        rule = Line2D(xs, ys, color=colour, linewidth=width)
        rule.set(linestyle=style)
        self.figure.add_artist(rule)

    def bar(
        self,
        drawn: ScalarMappable,
        values: Tensor,
        place: tuple[float, float, float],
        ticks: list[float] | None = None,
    ) -> None:
        """The scale of a map, at (left, top) and so wide."""
        left, top, width = place
        axes = self.axes(left, top, width, 0.06)
        low, high = drawn.get_clim()
        marks = ticks or [mark for mark in MaxNLocator(2).tick_values(low, high) if low <= mark <= high]
        colour_bar(self.figure, drawn, axes, values, marks)
        axes.tick_params(labelsize=SMALL, length=2, pad=1.5)
        for mark, label in zip(marks, axes.get_xticklabels(), strict=True):
            share = (mark - low) / (high - low)  # at the ends words stay within the scale
            label.set_horizontalalignment("left" if share < 0.15 else "right" if share > 0.85 else "center")

    def _place(self, left: float, top: float) -> tuple[float, float]:
        return left / self.width, 1 - top / self.height


def height_of(photo: Photo, width: float) -> float:
    """How tall a panel of this width is to be, so that the photo fills it."""
    rows, columns = photo.size
    return width * min(max(rows / columns, SLIMMEST), TALLEST)


def in_small_print(figure: Figure, note: str, *, width: float) -> Figure:
    """A figure of curves as wide and in the same type as those of maps, with its note above."""
    was, height = figure.get_size_inches()
    figure.set_size_inches(width, height * width / was)
    for axes in figure.axes:
        axes.title.set_fontsize(HEADING)
        axes.xaxis.label.set_fontsize(LABEL)
        axes.yaxis.label.set_fontsize(LABEL)
        axes.tick_params(labelsize=SMALL)
    if not figure.legends:
        figure.suptitle(note, fontsize=SMALL, color=GREY)
    for legend in figure.legends:  # it stands on top, where the note would be
        legend.set_title(note, prop=FontProperties(size=SMALL))
        legend.get_title().set_color(GREY)
    return figure
