"""Top-k intersection (Theiner et al. 2022): |top-k ∩ S| / k, S the pixels of what is to be found.

Where pixels tie for the last places it is what drawing lots between them gives on average, so that a map which says
nothing scores as chance does. Nothing to be found: undefined, NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.metrics.metric import Metric, inside

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.metrics.metric import Maps, Masks, Scores


def top_k_intersection(maps: Maps, masks: Masks, *, k: int = 1000) -> Scores:
    """Share of the k most important pixels that lie on what is to be found.

    >>> import torch
    >>> maps, mask = torch.tensor([[4.0, 3.0], [2.0, 1.0]]), torch.tensor([[True, False], [True, False]])
    >>> top_k_intersection(maps, mask, k=2).item()
    0.5
    """
    at_least("k", k, 1)
    values, found = inside(maps, masks)
    if k > values.shape[-1]:
        raise ConfigurationError(f"k is {k}, but a map has only {values.shape[-1]} pixels")
    place = values.shape[-1] - k
    least = torch.from_numpy(np.partition(values.numpy(), place, -1))[..., place, None]
    return torch.where(found.any(-1), hits(values, found, least, k) / k, torch.nan)


def hits(
    values: Float[Tensor, "*images pixels"],
    found: Bool[Tensor, "*images pixels"],
    least: Float[Tensor, "*images 1"],
    k: Tensor | int,
) -> Scores:
    """|top-k ∩ S|, where `least` is the k-th largest value."""
    above, tied = values > least, values == least
    places = k - above.sum(-1)
    return (above & found).sum(-1) + places * (tied & found).sum(-1).double() / tied.sum(-1)


TOP_K_INTERSECTION = Metric(
    name="top_k_intersection",
    better="higher",
    needs="masks",
    citation="Theiner et al. 2022",
    section="localisation, appendix tables 5, 6",
    function=top_k_intersection,
)
