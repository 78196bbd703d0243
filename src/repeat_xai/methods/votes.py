"""Maps → votes: which pixels each map calls important, and how much that counts.

    I = 1 where R ≥ τ, else 0            W = R / max R

A constant map singles out no pixel and so casts no vote; importance at or below zero weighs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from repeat_xai.methods.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Votes = Literal["weighted", "binary"]


def indicator(maps: Float[Tensor, "maps height width"], threshold: str) -> Bool[Tensor, "maps height width"]:
    """I: which pixels of each map reach its cut."""
    cuts = THRESHOLDS[threshold](maps)
    low, high = maps.flatten(1).aminmax(dim=1)
    return (maps >= cuts[:, None, None]) & (high > low)[:, None, None]


def weights(maps: Float[Tensor, "maps height width"], votes: Votes) -> Float[Tensor, "maps height width"]:
    """W: importance as a share of the map's largest, and zero where there is none above zero; 1 for binary votes."""
    if votes == "binary":
        return torch.ones_like(maps)
    top = maps.amax((1, 2), keepdim=True)
    return torch.where(top > 0, maps / top, 0.0).clamp_min(0)
