"""Aggregates, which turn a map, usually of uncertainty, into one number for the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from repeat_xai.metrics.complexity import complexity
from repeat_xai.metrics.map_arrays import flatten_maps, sort_rows

if TYPE_CHECKING:
    from repeat_xai.metrics.map_arrays import Maps, Scores


def mean(maps: Maps) -> Scores:
    """Return the mean over all pixels, as in the paper."""
    return flatten_maps(maps).mean(-1)


def median(maps: Maps) -> Scores:
    """Return the median of all pixels."""
    rows = sort_rows(flatten_maps(maps))
    half = rows.shape[-1] // 2
    return (rows[..., half] + rows[..., (rows.shape[-1] - 1) // 2]) / 2


def top(maps: Maps) -> Scores:
    """Return the mean of the largest twentieth of the pixels."""
    rows = sort_rows(flatten_maps(maps))
    return rows[..., -max(1, rows.shape[-1] // 20) :].mean(-1)


def entropy(maps: Maps) -> Scores:
    """Return the entropy of where the map puts its weight, which is its complexity."""
    return complexity(maps)


AGGREGATES: dict[str, Callable[[Tensor], Tensor]] = {f.__name__: f for f in (mean, median, top, entropy)}
