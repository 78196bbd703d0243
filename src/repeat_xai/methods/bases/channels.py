"""Attributions of every channel → one map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

    Attributions = Float[Tensor, "channels height width"]


def sum_abs(attributions: Attributions) -> Map:
    """Σ|a|: the paper's."""
    return attributions.abs().sum(0)


def max_abs(attributions: Attributions) -> Map:
    """max|a|."""
    return attributions.abs().amax(0)


def mean(attributions: Attributions) -> Map:
    """The mean, its sign kept: below zero where the pixel speaks against."""
    return attributions.mean(0)


CHANNELS: dict[str, Callable[[Tensor], Tensor]] = {f.__name__: f for f in (sum_abs, max_abs, mean)}
