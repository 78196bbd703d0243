"""Thresholds find the cut of each map of a batch: the value at and above which a pixel counts as important.

They are the mean (Glasbey 1993), Otsu's (1979), the triangle (Zack et al. 1977) and Li's minimum cross entropy (Li and
Tam 1998). The methods that need a histogram use 256 bins over the map's own range. The cut of a constant map is its
value. A threshold of one's own is a function from maps [maps, height, width] to their cuts [maps].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, choose

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BINS = 256
Threshold = str | Callable[[Tensor], Tensor]
"""A name in `THRESHOLDS`, or a function from maps to their cuts."""


def mean(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """Cut at the mean of the map."""
    return maps.mean((1, 2))


def otsu(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, " maps"]:
    """Cut at the bin that maximises the variance between the two classes of pixels.

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
    """Cut at the bin furthest below the line from the histogram's peak to the end of its longer tail."""
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
    """Cut at the value that minimises the cross entropy between the map and its two-valued version."""
    flat = maps.flatten(1)
    low = flat.amin(1, keepdim=True)
    flat = flat - low
    steps = flat.sort(1).values.diff(dim=1)
    tolerance = steps.masked_fill(steps == 0, torch.inf).amin(1) / 2
    cut, moving = flat.mean(1), torch.ones(len(flat), dtype=torch.bool, device=maps.device)
    while moving.any():
        above = flat > cut[:, None]
        mean_above, mean_below = _mean_where(flat, above), _mean_where(flat, ~above)
        moving = moving & (mean_below > 0)
        fixed_point = (mean_below - mean_above) / (mean_below.log() - mean_above.log())
        moved = torch.where(moving, fixed_point, cut)
        moving = moving & ((moved - cut).abs() > tolerance)
        cut = moved
    return _or_constant(maps, cut + low[:, 0])


THRESHOLDS: dict[str, Callable[[Tensor], Tensor]] = {f.__name__: f for f in (mean, otsu, triangle, li)}
"""Every threshold by its name: a function that is added here is known to the command line, the app and the docs."""


def expect_threshold(threshold: object) -> None:
    """Refuse what is neither the name of a threshold nor a function."""
    if isinstance(threshold, type) or not callable(threshold):
        choose("threshold", threshold, THRESHOLDS)


def cuts(maps: Float[Tensor, "maps height width"], threshold: Threshold) -> Float[Tensor, " maps"]:
    """Return the cut of each map by a threshold, given by name or as a function."""
    if isinstance(threshold, str):
        return THRESHOLDS[threshold](maps)
    values = threshold(maps)
    if not isinstance(values, Tensor) or values.shape != maps.shape[:1]:
        shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ConfigurationError(f"the threshold gave {shape} for {len(maps)} maps; return one number per map")
    return values


def _histogram(
    maps: Float[Tensor, "maps height width"],
) -> tuple[Int[Tensor, "maps bins"], Float[Tensor, "maps bins"]]:
    """Return counts and centres of equal bins over each map's own range; a value on an edge is in the bin above it."""
    flat = maps.flatten(1).contiguous()
    low, high = flat.aminmax(dim=1, keepdim=True)
    edges = low + (high - low) * torch.linspace(0, 1, BINS + 1, dtype=maps.dtype, device=maps.device)
    edges[:, -1:] = high
    index = (torch.searchsorted(edges, flat, right=True) - 1).clamp(0, BINS - 1)
    counts = torch.zeros(len(flat), BINS, dtype=torch.long, device=maps.device)
    return counts.scatter_add_(1, index, torch.ones_like(index)), (edges[:, 1:] + edges[:, :-1]) / 2


def _mean_where(values: Float[Tensor, "maps pixels"], where: Tensor) -> Float[Tensor, " maps"]:
    """Return the mean of the chosen pixels of each map."""
    return (values * where).sum(1) / where.sum(1)


def _or_constant(maps: Float[Tensor, "maps height width"], cuts: Float[Tensor, " maps"]) -> Float[Tensor, " maps"]:
    """Return the cuts, but the map's own value for a constant map."""
    low, high = maps.flatten(1).aminmax(dim=1)
    return torch.where(low == high, low, cuts)
