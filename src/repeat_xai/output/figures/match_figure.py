"""The figure of a match: both photos side by side, and lines between the parts that certainly go together."""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from repeat_xai.output.figures.captions import short_name
from repeat_xai.output.figures.figure_files import SilentFigure
from repeat_xai.output.figures.map_drawing import draw_photo
from repeat_xai.types import Match, Photo
from repeat_xai.types.match import Cell

Colour = tuple[float, float, float, float]
MAX_LINES = 12
"""Most matches that are drawn: of more, the lines could no longer be told apart."""
PHOTO_WIDTH = 3.4
"""Inches that a photo is wide."""
COLOURS = colormaps["plasma"]
"""Colours of the lines, from the most certain match to the least."""
LIGHTEST = 0.92
"""Place on the colour scale where it ends: beyond, it is too light on a photo."""


def match_figure(match: Match, *, level: float = 0.95) -> Figure:
    """Draw both photos, and a numbered line for each of the strongest certain matches; no part has two lines."""
    photos = (match.a.photo, match.b.photo)
    ratio = max(photo.size[0] / photo.size[1] for photo in photos)
    height = min(max(PHOTO_WIDTH * ratio, 1.2), 7.0)
    figure = SilentFigure(figsize=(2 * PHOTO_WIDTH + 0.9, height + 0.8), layout="constrained")
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.12})
    for axes, photo in ((left, photos[0]), (right, photos[1])):
        draw_photo(axes, photo, titled=False)
        axes.set_title(short_name(photo, 40), fontsize=9, parse_math=False)
    certain, drawn = match.partners(level), match.strongest(level, MAX_LINES)
    figure.suptitle(_summary(match, len(certain), len(drawn), level), fontsize=8, color="#444444", parse_math=False)
    for number, partner in reversed(list(enumerate(drawn))):  # the most certain match lies on top
        colour = COLOURS(LIGHTEST * number / max(len(drawn) - 1, 1))
        height_in_cell = (number + 0.5) / len(drawn)  # lines between the same rows would else lie on each other
        boxes = [
            _mark(axes, photo, cell, match.cells, label=str(number + 1), colour=colour)
            for axes, photo, cell in ((left, photos[0], partner.a), (right, photos[1], partner.b))
        ]
        start, end = (box.y0 + height_in_cell * box.height for box in boxes)
        line = ConnectionPatch(
            (boxes[0].x1, start), (boxes[1].x0, end), "data", "data", axesA=left, axesB=right, color=colour
        )
        line.set_linewidth(1.4)
        line.set_path_effects([withStroke(linewidth=2.8, foreground="white")])
        line.set_in_layout(False)
        figure.add_artist(line)
    return figure


def _summary(match: Match, certain: int, drawn: int, level: float) -> str:
    """Return how many matches are certain, and how many of them are drawn."""
    encoder, pairs = match.a.provenance["encoder"]["name"], match.effect.numel()
    matches = f"{certain:,} of {pairs:,} pairs of parts certainly go together at level {level:g}"
    lines = "" if drawn == certain else f"; the strongest {drawn} that share no part are drawn"
    return f"{encoder}\n{matches}{lines}"


def _mark(axes: Axes, photo: Photo, cell: Cell, cells: int, *, label: str, colour: Colour) -> Bbox:
    """Draw the outline of a cell with its number, and return its box in pixels of the photo."""
    left, top, right, bottom = photo.box
    width, height = (right - left) / cells, (bottom - top) / cells
    box = Bbox.from_bounds(left + cell.column * width, top + cell.row * height, width, height)
    outline = Rectangle(box.p0, width, height, fill=False, edgecolor=colour, linewidth=1.4)
    outline.set_path_effects([withStroke(linewidth=2.8, foreground="white")])
    axes.add_patch(outline)
    text = axes.annotate(label, box.p0, (3, -3), textcoords="offset points", fontsize=8, weight="bold", va="top")
    text.set_color(colour)
    text.set_path_effects([withStroke(linewidth=2.2, foreground="white")])
    return box
