"""Map → cut: the value at and above which a pixel counts as important, for each map of a batch.

Mean (Glasbey 1993), Otsu (1979), triangle (Zack et al. 1977) and Li's minimum cross entropy (Li & Tam 1998). The
histogram methods use 256 bins over the map's own range. A constant map's cut is its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BINS = 256


def mean(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """The mean value."""
    return maps.mean((1, 2))


def otsu(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """The bin that parts the pixels into the two classes whose means lie furthest apart, by weight.

    >>> otsu(torch.tensor([[[0.0, 0.0, 0.1, 0.9, 1.0]]])).item() > 0.09
    True
    """
    counts, centres = _histogram(maps)
    counts = counts.to(maps.dtype)
    below, mass = counts.cumsum(1), (counts * centres).cumsum(1)
    above = counts.flip(1).cumsum(1).flip(1)
    mass_above = (counts * centres).flip(1).cumsum(1).flip(1)
    means_below, means_above = mass / below, mass_above / above
    between = below[:, :-1] * above[:, 1:] * (means_below[:, :-1] - means_above[:, 1:]).square()
    return _or_constant(maps, centres.gather(1, between.argmax(1, keepdim=True))[:, 0])


def triangle(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """The bin furthest below the line from the histogram's peak to the end of its longer tail."""
    counts, centres = _histogram(maps)
    bins = torch.arange(BINS, device=maps.device)
    filled = counts > 0
    first, last = filled.int().argmax(1), BINS - 1 - filled.flip(1).int().argmax(1)
    peak = counts.argmax(1)
    right = peak - first < last - peak
    counts = torch.where(right[:, None], counts.flip(1), counts)
    end, peak = torch.where(right, BINS - 1 - last, first), torch.where(right, BINS - 1 - peak, peak)
    width, height = (peak - end).to(maps.dtype), counts.gather(1, peak[:, None])[:, 0].to(maps.dtype)
    norm = torch.hypot(height, width).clamp_min(1)
    steps = (bins - end[:, None]).to(maps.dtype)
    depth = (height / norm)[:, None] * steps - (width / norm)[:, None] * counts
    tail = (bins >= end[:, None]) & (bins < peak[:, None])
    level = depth.masked_fill(~tail, -torch.inf).argmax(1)
    level = torch.where(right, BINS - 1 - level, level)
    return _or_constant(maps, centres.gather(1, level[:, None])[:, 0])


def li(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """The fixed point of minimum cross entropy between a map and its two-valued version."""
    flat = maps.flatten(1)
    low = flat.amin(1, keepdim=True)
    flat = flat - low
    steps = flat.sort(1).values.diff(dim=1)
    tolerance = steps.masked_fill(steps == 0, torch.inf).amin(1) / 2
    cut, moving = flat.mean(1), torch.ones(len(flat), dtype=torch.bool, device=maps.device)
    while moving.any():
        fore = flat > cut[:, None]
        mean_fore, mean_back = _mean_where(flat, fore), _mean_where(flat, ~fore)
        moving = moving & (mean_back > 0)
        found = (mean_back - mean_fore) / (mean_back.log() - mean_fore.log())
        moved = torch.where(moving, found, cut)
        moving = moving & ((moved - cut).abs() > tolerance)
        cut = moved
    return _or_constant(maps, cut + low[:, 0])


THRESHOLDS: dict[str, Callable[[Tensor], Tensor]] = {f.__name__: f for f in (mean, otsu, triangle, li)}


def _histogram(
    maps: Float[Tensor, "maps height width"],
) -> tuple[Int[Tensor, "maps bins"], Float[Tensor, "maps bins"]]:
    """Counts and centres of equal bins over each map's own range; a value on an edge belongs to the bin above it."""
    flat = maps.flatten(1).contiguous()
    low, high = flat.aminmax(dim=1, keepdim=True)
    edges = low + (high - low) * torch.linspace(0, 1, BINS + 1, dtype=maps.dtype, device=maps.device)
    edges[:, -1:] = high
    index = (torch.searchsorted(edges, flat, right=True) - 1).clamp(0, BINS - 1)
    counts = torch.zeros(len(flat), BINS, dtype=torch.long, device=maps.device)
    return counts.scatter_add_(1, index, torch.ones_like(index)), (edges[:, 1:] + edges[:, :-1]) / 2


def _mean_where(values: Float[Tensor, "maps pixels"], where: Tensor) -> Float[Tensor, " maps"]:
    return (values * where).sum(1) / where.sum(1)


def _or_constant(maps: Float[Tensor, "maps height width"], cuts: Float[Tensor, " maps"]) -> Float[Tensor, " maps"]:
    low, high = maps.flatten(1).aminmax(dim=1)
    return torch.where(low == high, low, cuts)
