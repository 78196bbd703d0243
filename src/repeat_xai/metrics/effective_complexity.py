"""Effective complexity (Nguyen and Martínez 2020): how many pixels have |a| above a share ε of the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics.complexity import TINY
from repeat_xai.metrics.metric import Metric, flat

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Scores


def effective_complexity(maps: Maps, *, share: float = 1e-5) -> Scores:
    """How many pixels count at all; none of a map of zeros.

    >>> import torch
    >>> effective_complexity(torch.tensor([[0.0, 1.0], [-2.0, 1e-9]])).item()
    2.0
    """
    if not 0 <= share < 1:
        raise ConfigurationError(f"share must be at least 0 and below 1, not {share}")
    weights = flat(maps).abs()
    return (weights / weights.amax(-1, keepdim=True).clamp_min(TINY) > share).sum(-1).double()


EFFECTIVE_COMPLEXITY = Metric(
    name="effective_complexity",
    better="lower",
    needs="maps",
    citation="Nguyen and Martínez 2020",
    section="",
    function=effective_complexity,
)
