"""Relevance rank accuracy (Arras et al. 2022): |top-|S| ∩ S| / |S|. Ties and an empty S as for the top k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.metrics.metric import Metric, inside, ordered
from repeat_xai.metrics.top_k import hits

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Masks, Scores


def relevance_rank(maps: Maps, masks: Masks) -> Scores:
    """Share of what is to be found among as many most important pixels.

    >>> import torch
    >>> maps, mask = torch.tensor([[4.0, 3.0], [2.0, 1.0]]), torch.tensor([[True, False], [True, False]])
    >>> relevance_rank(maps, mask).item()
    0.5
    """
    values, found = inside(maps, masks)
    size = found.sum(-1)
    last = (values.shape[-1] - size).clamp_max(values.shape[-1] - 1)[..., None]
    least = ordered(values).gather(-1, last)
    return torch.where(size > 0, hits(values, found, least, size) / size, torch.nan)


RELEVANCE_RANK = Metric(
    name="relevance_rank",
    better="higher",
    needs="masks",
    citation="Arras et al. 2022",
    section="",
    function=relevance_rank,
)
