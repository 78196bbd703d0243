"""Histogram entropy (Hedström et al. 2024): −Σ q ln q, q the shares of pixels in 100 bins over the map's own range.

From 0, a constant map, to ln 100. It looks at values alone, not at where they are; the sanity check eMPRT compares it
before and after the encoder is randomised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.errors import at_least
from repeat_xai.metrics.metric import Metric, flat

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Scores

BINS = 100


def histogram_entropy(maps: Maps, *, bins: int = BINS) -> Scores:
    """How many different values a map takes, evenly.

    >>> import torch
    >>> histogram_entropy(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), bins=2).item() == torch.tensor(2.0).double().log()
    tensor(True)
    """
    at_least("bins", bins, 1)
    values = flat(maps)
    rows = values.reshape(-1, values.shape[-1])
    low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
    edges = torch.arange(bins + 1) * ((high - low) / bins) + low
    edges[:, -1:] = high
    width = (high - low).clamp_min(torch.finfo(torch.float64).tiny)
    which = ((rows - low) / width * bins).long().clamp(0, bins - 1)
    which = which - (rows < edges.gather(1, which)).long()  # where the quotient was rounded across an edge
    which = which + ((rows >= edges.gather(1, which + 1)) & (which < bins - 1)).long()
    offsets = torch.arange(len(rows))[:, None] * bins
    counts = torch.bincount((which + offsets).flatten(), minlength=len(rows) * bins).view(len(rows), bins)
    shares = counts.double() / rows.shape[1]
    return (-shares.xlogy(shares).sum(-1) + 0.0).view(values.shape[:-1])


HISTOGRAM_ENTROPY = Metric(
    name="histogram_entropy",
    better="neither",
    needs="maps",
    citation="Hedström et al. 2024",
    section="sanity checks, table 1",
    function=histogram_entropy,
)
