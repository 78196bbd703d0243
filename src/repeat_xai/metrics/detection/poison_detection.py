"""Poisoned images told from clean ones without labels, as the paper's appendix does it.

Of n images, share · n at random are poisoned and the others, none of them the same, are clean. A mixture of two normal
distributions is fitted to the scores of all, and its posterior and the score itself are judged by AUROC, over several
draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.metrics.detection.mixture import FEWEST, mixture
from repeat_xai.metrics.detection.quality import quality
from repeat_xai.metrics.statistics import Summary
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float

LEVEL = 0.95
STARTS = 2
"""Of each draw's mixture: there are many."""


class Detection(NamedTuple):
    """AUROC over the draws: its mean, its deviation, and the interval that holds 95 % of the draws."""

    posterior: Summary
    """Of the mixture's probability of being poisoned: the paper's."""
    raw: Summary
    """Of the score, without any mixture."""


def detection(
    clean_scores: Float[Tensor, " images"],
    poisoned_scores: Float[Tensor, " images"],
    *,
    share: float,
    draws: int = 20,
    seed: int,
) -> Detection:
    """Of the scores of the same images, clean and poisoned.

    >>> import torch
    >>> found = detection(torch.arange(10.0), torch.arange(10.0) + 100, share=0.3, seed=0)
    >>> found.posterior.mean, found.raw.mean
    (1.0, 1.0)
    """
    at_least("draws", draws, 1)
    clean, poisoned = (scores.detach().double().cpu() for scores in (clean_scores, poisoned_scores))
    n = len(clean)
    if clean.shape != poisoned.shape or clean.ndim != 1 or n < FEWEST:
        raise ConfigurationError(
            f"scores of the same {FEWEST} images or more are needed, clean and poisoned, "
            f"not {list(clean.shape)} and {list(poisoned.shape)}"
        )
    if not 0 < share < 1 or not 0 < (many := round(share * n)) < n:
        raise ConfigurationError(f"share {share} of {n} images leaves none clean or none poisoned; choose another")
    found = []
    for draw in range(draws):
        stream = fold(seed, "poison", draw)
        order = np.argsort(uniforms(stream, start=0, stop=1, width=n)[0], kind="stable")
        known, unknown = clean[order[many:]], poisoned[order[:many]]
        split = mixture(torch.cat((known, unknown)), starts=STARTS, seed=stream)
        parts = ((split.log_odds(known), split.log_odds(unknown)), (known, unknown))
        found.append([quality(*some).auroc for some in parts])
    posterior, raw = (_summary(np.array(values), n) for values in zip(*found, strict=True))
    return Detection(posterior, raw)


def _summary(values: np.ndarray, images: int) -> Summary:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return Summary(float(values.mean()), spread, float(low), float(high), images, 0)
