"""A map → one number for the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from repeat_xai.metrics.complexity import complexity
from repeat_xai.metrics.metric import flat, ordered

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Scores


def mean(maps: Maps) -> Scores:
    """Over all pixels: the paper's."""
    return flat(maps).mean(-1)


def median(maps: Maps) -> Scores:
    """Of all pixels."""
    rows = ordered(flat(maps))
    half = rows.shape[-1] // 2
    return (rows[..., half] + rows[..., (rows.shape[-1] - 1) // 2]) / 2


def top(maps: Maps) -> Scores:
    """Mean of the largest twentieth."""
    rows = ordered(flat(maps))
    return rows[..., -max(1, rows.shape[-1] // 20) :].mean(-1)


def entropy(maps: Maps) -> Scores:
    """Of where the map puts its weight: its complexity."""
    return complexity(maps)


AGGREGATES: dict[str, Callable[[Tensor], Tensor]] = {f.__name__: f for f in (mean, median, top, entropy)}
