"""Votes say which pixels a map calls important, and how much that counts.

    I = 1 where R ≥ τ, else 0            W = R / max R

A constant map singles out no pixel and so casts no vote. Importance at or below zero has no weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from repeat_xai.methods.thresholds import Threshold, cuts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Votes = Literal["weighted", "binary"]


def indicator(maps: Float[Tensor, "maps height width"], threshold: Threshold) -> Bool[Tensor, "maps height width"]:
    """Return I: whether each pixel of each map reaches the map's cut."""
    low, high = maps.flatten(1).aminmax(dim=1)
    return (maps >= cuts(maps, threshold)[:, None, None]) & (high > low)[:, None, None]


def weights(maps: Float[Tensor, "maps height width"], votes: Votes) -> Float[Tensor, "maps height width"]:
    """Return W: importance as a share of the map's maximum, 0 where that is not positive; 1 for binary votes."""
    if votes == "binary":
        return torch.ones_like(maps)
    maximum = maps.amax((1, 2), keepdim=True)
    return torch.where(maximum > 0, maps / maximum, 0.0).clamp_min(0)
