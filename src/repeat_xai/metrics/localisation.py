"""Metrics of whether a map finds an object: top-k intersection, pointing game, relevance rank and attribution mass.

With a the values of a map and S the pixels of the object, its segmentation:

    top-k intersection   |top-k ∩ S| / k             top-k the k pixels with the largest a
    relevance rank       |top-|S| ∩ S| / |S|         the same with k = |S|, so that 1 can be reached
    pointing game        1 if the pixel with the largest a lies in S, else 0
    attribution mass     Σ_S a⁺ / Σ a⁺               a⁺ = max(a, 0)

Pixels that tie for the last places of the top k are counted as drawing lots between them gives on average, so that a
constant map scores as chance does. An empty S leaves nothing to find: all four are NaN there, undefined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.metrics.map_arrays import flatten_with_segmentations, sort_rows
from repeat_xai.metrics.metric import MapMetric

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.metrics.map_arrays import Maps, Scores, Segmentations


def top_k_intersection(maps: Maps, segmentations: Segmentations, *, k: int = 1000) -> Scores:
    """Return the share of the k most important pixels that lie on the object (Theiner et al. 2022): |top-k ∩ S| / k.

    Range: 0 to 1; an object of fewer than k pixels cannot reach 1. Higher is better. NaN where the segmentation is
    empty. Ties count as drawing lots between them gives on average.

    >>> import torch
    >>> maps, object_ = torch.tensor([[4.0, 3.0], [2.0, 1.0]]), torch.tensor([[True, False], [True, False]])
    >>> top_k_intersection(maps, object_, k=2).item()
    0.5
    """
    at_least("k", k, 1)
    values, inside = flatten_with_segmentations(maps, segmentations)
    if k > values.shape[-1]:
        raise ConfigurationError(f"k is {k}, but a map has only {values.shape[-1]} pixels")
    place = values.shape[-1] - k
    kth = torch.from_numpy(np.partition(values.numpy(), place, -1))[..., place, None]
    return torch.where(inside.any(-1), _expected_hits(values, inside, kth, k) / k, torch.nan)


def relevance_rank(maps: Maps, segmentations: Segmentations) -> Scores:
    """Return the share of the object that the |S| most important pixels cover (Arras et al. 2022): |top-|S| ∩ S| / |S|.

    Range: 0 to 1. Higher is better. NaN where the segmentation is empty. Ties count as drawing lots between them gives
    on average.

    >>> import torch
    >>> maps, object_ = torch.tensor([[4.0, 3.0], [2.0, 1.0]]), torch.tensor([[True, False], [True, False]])
    >>> relevance_rank(maps, object_).item()
    0.5
    """
    values, inside = flatten_with_segmentations(maps, segmentations)
    size = inside.sum(-1)
    place = (values.shape[-1] - size).clamp_max(values.shape[-1] - 1)[..., None]
    kth = sort_rows(values).gather(-1, place)
    return torch.where(size > 0, _expected_hits(values, inside, kth, size) / size, torch.nan)


def _expected_hits(
    values: Float[Tensor, "*images pixels"],
    inside: Bool[Tensor, "*images pixels"],
    kth: Float[Tensor, "*images 1"],
    k: Tensor | int,
) -> Scores:
    """Return |top-k ∩ S|, where `kth` is the k-th largest value, averaged over the order of pixels that tie with it."""
    above, tied = values > kth, values == kth
    places = k - above.sum(-1)
    return (above & inside).sum(-1) + places * (tied & inside).sum(-1).double() / tied.sum(-1)


def pointing_game(maps: Maps, segmentations: Segmentations) -> Scores:
    """Return 1 where the most important pixel of a map lies on the object, else 0 (Zhang et al. 2018).

    Where several pixels share the largest value, the score is the share of them that lies on the object. Higher is
    better. NaN where the segmentation is empty.

    >>> import torch
    >>> pointing_game(torch.eye(2), torch.tensor([[True, False], [False, False]])).item()
    0.5
    """
    values, inside = flatten_with_segmentations(maps, segmentations)
    largest = values == values.amax(-1, keepdim=True)
    return torch.where(inside.any(-1), (largest & inside).sum(-1).double() / largest.sum(-1), torch.nan)


def attribution_mass(maps: Maps, segmentations: Segmentations) -> Scores:
    """Return the share of a map's positive weight that lies on the object (Kohlbrenner et al. 2020): Σ_S a⁺ / Σ a⁺.

    Values below zero count as zero. Range: 0 to 1. Higher is better. NaN where the segmentation is empty or no value of
    the map is above zero.

    >>> import torch
    >>> attribution_mass(torch.tensor([[3.0, 1.0]]), torch.tensor([[True, False]])).item()
    0.75
    """
    values, inside = flatten_with_segmentations(maps, segmentations)
    weights = values.clamp_min(0)
    total = weights.sum(-1)
    return torch.where(inside.any(-1) & (total > 0), (weights * inside).sum(-1) / total, torch.nan)


NAMED = (
    MapMetric(
        name="top_k_intersection",
        better="higher",
        needs="segmentation",
        description="share of the k = 1000 most important pixels on the object",
        citation="Theiner et al. 2022",
        section="localisation, appendix tables 5, 6",
        function=top_k_intersection,
    ),
    MapMetric(
        name="pointing_game",
        better="higher",
        needs="segmentation",
        description="whether the most important pixel lies on the object",
        citation="Zhang et al. 2018",
        function=pointing_game,
    ),
    MapMetric(
        name="relevance_rank",
        better="higher",
        needs="segmentation",
        description="share of the object covered by as many most important pixels",
        citation="Arras et al. 2022",
        function=relevance_rank,
    ),
    MapMetric(
        name="attribution_mass",
        better="higher",
        needs="segmentation",
        description="share of the positive weight on the object",
        citation="Kohlbrenner et al. 2020",
        function=attribution_mass,
    ),
)
