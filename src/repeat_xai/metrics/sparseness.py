"""Sparseness (Chalasani et al. 2020): the Gini index of |a|, Σ (2i − n − 1)·v_i / (n Σ v), v sorted.

From 0, the same everywhere, to 1 − 1/n, all on one pixel. A map of zeros is the same everywhere: 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.metrics.complexity import TINY
from repeat_xai.metrics.metric import Metric, flat, ordered

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Scores


def sparseness(maps: Maps) -> Scores:
    """How unevenly a map spreads its weight.

    >>> import torch
    >>> sparseness(torch.eye(2)).item()
    0.5
    """
    weights = flat(maps).abs()
    weights = ordered(weights / weights.amax(-1, keepdim=True).clamp_min(TINY))
    n = weights.shape[-1]
    ranks = 2 * torch.arange(1, n + 1, dtype=torch.float64) - n - 1
    return (weights @ ranks) / (n * weights.sum(-1)).clamp_min(TINY)


SPARSENESS = Metric(
    name="sparseness",
    better="higher",
    needs="maps",
    citation="Chalasani et al. 2020",
    section="",
    function=sparseness,
)
