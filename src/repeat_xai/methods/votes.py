"""Votes say which pixels a map calls important, and how much that counts.

    I = 1 where R ≥ τ, else 0            W = R / max R                                the image is its own target
                                         W = (R − min R) / (max R − min R)            any other target

A constant map singles out no pixel and so casts no vote. Importance at or below zero has no weight under the first
formula, the paper's. It suits similarities of masked copies to the whole image, which are near 1 at best and 0 at
worst. Similarities to another target have no such zero: those to a contrast or to a direction change by any constant
with the target, and all may be negative, which would leave no pixel a weight. The second formula, as the cuts do, only
asks how high the pixel lies in its own map, and gives the same weights whatever is added to all similarities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from repeat_xai.methods.thresholds import Threshold, cuts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Votes = Literal["weighted", "binary"]
Zero = Literal["zero", "minimum"]
"""The importance that has no weight: zero, as in the paper, or the smallest of the map."""


def indicator(maps: Float[Tensor, "maps height width"], threshold: Threshold) -> Bool[Tensor, "maps height width"]:
    """Return I: whether each pixel of each map reaches the map's cut."""
    low, high = maps.flatten(1).amin(1), maps.flatten(1).amax(1)  # each is far faster than aminmax on a CPU
    return (maps >= cuts(maps, threshold)[:, None, None]) & (high > low)[:, None, None]


def weights(
    maps: Float[Tensor, "maps height width"], votes: Votes, zero: Zero = "zero"
) -> Float[Tensor, "maps height width"]:
    """Return W: importance as a share of the map's maximum, 0 where that is not positive; 1 for binary votes.

    With `zero="minimum"`, both are counted from the smallest importance of the map.
    """
    if votes == "binary":
        return torch.ones_like(maps)
    if zero == "minimum":
        maps = maps - maps.amin((1, 2), keepdim=True)
    maximum = maps.amax((1, 2), keepdim=True)
    return torch.where(maximum > 0, maps / maximum, 0.0).clamp_min(0)


def weighted_votes(
    maps: Float[Tensor, "maps height width"], threshold: Threshold, votes: Votes, zero: Zero
) -> tuple[Bool[Tensor, "maps height width"], Float[Tensor, "maps height width"]]:
    """Return I and I·W, the latter written over the maps, since new memory would take longer than the sums."""
    important = indicator(maps, threshold)
    if votes == "binary":
        return important, important.to(maps.dtype)
    if zero == "minimum":
        maps.sub_(maps.amin((1, 2), keepdim=True))
    maximum = maps.amax((1, 2), keepdim=True)
    maps.div_(torch.where(maximum > 0, maximum, torch.inf)).clamp_min_(0)
    return important, maps.masked_fill_(important.logical_not(), 0)
