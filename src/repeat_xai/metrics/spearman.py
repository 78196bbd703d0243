"""Spearman's rank correlation of two maps: Pearson's correlation of their pixels' ranks, those that tie sharing theirs.

    ρ = Σ (r − r̄)(t − r̄) / √(Σ (r − r̄)² Σ (t − r̄)²)            r, t the ranks, r̄ = (n + 1) / 2

Undefined, NaN, where a map is constant: it has no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics.metric import flat, ordered

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.metrics.metric import Maps, Scores


def spearman(maps: Maps, others: Maps) -> Scores:
    """How far two maps order their pixels alike: 1 just so, −1 the other way round.

    >>> import torch
    >>> spearman(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[1.0, 3.0, 2.0, 9.0]])).item()
    0.8
    """
    if maps.shape != others.shape:
        raise ConfigurationError(f"maps of {list(maps.shape)} cannot be compared with maps of {list(others.shape)}")
    one, other = (_ranks(flat(some)) for some in (maps, others))
    sizes = one.square().sum(-1) * other.square().sum(-1)
    return torch.where(sizes > 0, (one * other).sum(-1) / sizes.sqrt(), torch.nan)


def _ranks(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """Less their mean; twice over, so that all are whole numbers and sums of them exact."""
    rows = ordered(values).contiguous()
    below, up_to = (torch.searchsorted(rows, values.contiguous(), right=right) for right in (False, True))
    return (below + up_to - values.shape[-1]).double()
