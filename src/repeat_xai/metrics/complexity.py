"""Complexity (Bhatt et al. 2020): −Σ p ln p with p = |a| / Σ|a|, the entropy of where the map puts its weight, in nats.

From 0, all on one pixel, to ln n, the same everywhere. A map of zeros puts no weight anywhere: 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from repeat_xai.metrics.metric import Metric, flat

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Scores


def complexity(maps: Maps) -> Scores:
    """How widely a map spreads its weight.

    >>> import torch
    >>> complexity(torch.ones(2, 2)).item() == torch.tensor(4.0).double().log().item()
    True
    """
    weights = flat(maps).abs()
    weights = weights / weights.amax(-1, keepdim=True).clamp_min(TINY)  # so that no sum overflows
    shares = weights / weights.sum(-1, keepdim=True).clamp_min(TINY)
    return -shares.xlogy(shares).sum(-1) + 0.0


TINY = 1e-300
COMPLEXITY = Metric(
    name="complexity",
    better="lower",
    needs="maps",
    citation="Bhatt et al. 2020",
    section="complexity, table 3; appendix tables 1, 2, 5, 6",
    function=complexity,
)
