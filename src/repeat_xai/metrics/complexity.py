"""Metrics of how complex a map is: complexity, sparseness, histogram entropy and effective complexity.

With a the values of a map of n pixels:

    complexity             −Σ p ln p                          p = |a| / Σ|a|
    sparseness             Σ (2i − n − 1)·v_i / (n Σ v)       v = |a| in ascending order, i = 1, …, n: the Gini index
    histogram entropy      −Σ q ln q                          q the shares of pixels in the bins of a histogram of a
    effective complexity   the number of pixels with |a| > ε max|a|

None of them needs to know where the object is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.metrics.map_arrays import TINY, flatten_maps, flatten_weights, sort_rows
from repeat_xai.metrics.metric import MapMetric

if TYPE_CHECKING:
    from repeat_xai.metrics.map_arrays import Maps, Scores

BINS = 100
"""Bins of the histogram, as in Hedström et al. (2024)."""


def complexity(maps: Maps) -> Scores:
    """Return how widely each map spreads its weight (Bhatt et al. 2020): −Σ p ln p with p = |a| / Σ|a|, in nats.

    Range: 0, all weight on one pixel, to ln n, the same weight on each of the n pixels. Lower is better: a map that a
    person can take in is concentrated. Always defined: a map of zeros, which puts weight nowhere, has complexity 0.

    Example: four pixels of equal weight have complexity ln 4.

    >>> import torch
    >>> round(complexity(torch.ones(2, 2)).item(), 4)
    1.3863
    """
    weights = flatten_weights(maps)
    shares = weights / weights.sum(-1, keepdim=True).clamp_min(TINY)
    return -shares.xlogy(shares).sum(-1) + 0.0


def sparseness(maps: Maps) -> Scores:
    """Return how unevenly each map spreads its weight (Chalasani et al. 2020): the Gini index of |a|.

        Σ (2i − n − 1)·v_i / (n Σ v)            v = |a| in ascending order, i = 1, …, n

    Range: 0, the same weight on each of the n pixels, to 1 − 1/n, all weight on one pixel. Higher is better. Always
    defined: a map of zeros is the same everywhere and has sparseness 0.

    >>> import torch
    >>> sparseness(torch.eye(2)).item()
    0.5
    """
    weights = sort_rows(flatten_weights(maps))
    n = weights.shape[-1]
    ranks = 2 * torch.arange(1, n + 1, dtype=torch.float64) - n - 1
    return (weights @ ranks) / (n * weights.sum(-1)).clamp_min(TINY)


def histogram_entropy(maps: Maps, *, bins: int = BINS) -> Scores:
    """Return the entropy of each map's histogram (Hedström et al. 2024): −Σ q ln q, in nats.

    q are the shares of pixels in `bins` bins of equal width between the least and the largest value of the map. The
    metric depends on the values alone, not on where they lie.

    Range: 0, a constant map, to ln `bins`. Neither direction is better: the sanity check `emprt` compares the entropy
    before and after the encoder's weights are randomised. Always defined.

    >>> import torch
    >>> round(histogram_entropy(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), bins=2).item(), 4)
    0.6931
    """
    at_least("bins", bins, 1)
    values = flatten_maps(maps)
    rows = values.reshape(-1, values.shape[-1])
    low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
    edges = torch.arange(bins + 1) * ((high - low) / bins) + low
    edges[:, -1:] = high
    width = (high - low).clamp_min(torch.finfo(torch.float64).tiny)
    bin_of = ((rows - low) / width * bins).long().clamp(0, bins - 1)
    # Rounding may carry the quotient across the edge of a bin: compare with the edges themselves, as numpy does.
    bin_of = bin_of - (rows < edges.gather(1, bin_of)).long()
    bin_of = bin_of + ((rows >= edges.gather(1, bin_of + 1)) & (bin_of < bins - 1)).long()
    offsets = torch.arange(len(rows))[:, None] * bins
    counts = torch.bincount((bin_of + offsets).flatten(), minlength=len(rows) * bins).view(len(rows), bins)
    shares = counts.double() / rows.shape[1]
    return (-shares.xlogy(shares).sum(-1) + 0.0).view(values.shape[:-1])


def effective_complexity(maps: Maps, *, share: float = 1e-5) -> Scores:
    """Return how many pixels of each map have a magnitude above `share` of the largest (Nguyen and Martínez 2020).

    Range: 0, a map of zeros, to the number of pixels. Lower is better. Always defined.

    >>> import torch
    >>> effective_complexity(torch.tensor([[0.0, 1.0], [-2.0, 1e-9]])).item()
    2.0
    """
    if not 0 <= share < 1:
        raise ConfigurationError(f"share must be at least 0 and below 1, not {share}")
    return (flatten_weights(maps) > share).sum(-1).double()


NAMED = (
    MapMetric(
        name="complexity",
        better="lower",
        description="entropy of where the map puts its weight",
        citation="Bhatt et al. 2020",
        section="complexity, table 3; appendix tables 1, 2, 5, 6",
        function=complexity,
    ),
    MapMetric(
        name="sparseness",
        better="higher",
        description="Gini index of the magnitudes",
        citation="Chalasani et al. 2020",
        function=sparseness,
    ),
    MapMetric(
        name="histogram_entropy",
        better="neither",
        description="entropy of the histogram of the map's values",
        citation="Hedström et al. 2024",
        section="sanity checks, table 1",
        function=histogram_entropy,
    ),
    MapMetric(
        name="effective_complexity",
        better="lower",
        description="number of pixels that are not negligible",
        citation="Nguyen and Martínez 2020",
        function=effective_complexity,
    ),
)
