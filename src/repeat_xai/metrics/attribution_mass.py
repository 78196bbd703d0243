"""Attribution mass (Kohlbrenner et al. 2020): Σ a over S / Σ a, of what speaks for: a below zero counts as zero.

Undefined, NaN, where there is nothing to be found or no weight at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.metrics.metric import Metric, inside

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Masks, Scores


def attribution_mass(maps: Maps, masks: Masks) -> Scores:
    """Share of a map's weight that lies on what is to be found.

    >>> import torch
    >>> attribution_mass(torch.tensor([[3.0, 1.0]]), torch.tensor([[True, False]])).item()
    0.75
    """
    values, found = inside(maps, masks)
    weights = values.clamp_min(0)
    total = weights.sum(-1)
    return torch.where(found.any(-1) & (total > 0), (weights * found).sum(-1) / total, torch.nan)


ATTRIBUTION_MASS = Metric(
    name="attribution_mass",
    better="higher",
    needs="masks",
    citation="Kohlbrenner et al. 2020",
    section="",
    function=attribution_mass,
)
