"""The two maps of an explanation, each on the scale that suits it."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from repeat_xai.output.figures.map_drawing import UNCERTAINTY, draw_map, draw_photo, most_of, scale
from repeat_xai.types import Explanation, Photo

SHARE, VARIANCE = (0.0, 1.0), (0.0, 0.25)
"""Where a share of votes lies, and its variance."""


def draw_bare(axes: Axes, photo: Photo) -> None:
    """The photo, without a title."""
    draw_photo(axes, photo)
    axes.set_title("")


def draw_importance(axes: Axes, explanation: Explanation) -> ScalarMappable:
    """Votes from 0 to 1, anything else over its own range."""
    colours, limits = scale(explanation.importance, votes=explanation.vote_share is not None)
    return draw_map(axes, explanation.photo, explanation.importance, colours, limits)


def draw_uncertainty(axes: Axes, explanation: Explanation) -> ScalarMappable:
    """Votes from 0 to ¼, anything else over its own range."""
    values = explanation.uncertainty
    limits = VARIANCE if explanation.vote_share is not None else most_of(values)
    return draw_map(axes, explanation.photo, values, UNCERTAINTY, limits)


def ends(explanation: Explanation, limits: tuple[float, float]) -> list[float] | None:
    """The marks of a scale of votes; None for any other, which has its own."""
    return list(limits) if explanation.vote_share is not None else None
