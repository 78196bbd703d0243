"""Detection of poisoned images among clean ones without labels, as in the paper's appendix.

Of n images, share · n drawn at random are poisoned and the others are clean, so that no image appears as both. A
mixture of two normal distributions is fitted to all scores. AUROC judges the mixture's posterior and the score itself,
and is averaged over several draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.metrics.detection.mixture import FEWEST_IMAGES, mixture
from repeat_xai.metrics.detection.quality import quality
from repeat_xai.metrics.metric import SetMetric
from repeat_xai.metrics.statistics import Summary
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float

LEVEL = 0.95
STARTS_PER_DRAW = 2
"""Starts of the mixture of each draw; few suffice, because the draws are averaged."""


class PoisonDetection(NamedTuple):
    """AUROC over the draws: its mean, its deviation, and the interval that holds 95 % of the draws."""

    posterior: Summary
    """AUROC of the mixture's probability that an image is poisoned, as in the paper."""
    raw: Summary
    """AUROC of the score itself, without the mixture."""


def detect_poison(
    clean_scores: Float[Tensor, " images"],
    poisoned_scores: Float[Tensor, " images"],
    *,
    share: float,
    draws: int = 20,
    seed: int,
) -> PoisonDetection:
    """Return how well the scores of the same images, clean and poisoned, tell which images are poisoned.

    Range of AUROC: 0 to 1; 0.5 is guessing and higher is better.

    >>> import torch
    >>> result = detect_poison(torch.arange(10.0), torch.arange(10.0) + 100, share=0.3, seed=0)
    >>> result.posterior.mean, result.raw.mean
    (1.0, 1.0)
    """
    at_least("draws", draws, 1)
    clean, poisoned = (scores.detach().double().cpu() for scores in (clean_scores, poisoned_scores))
    n = len(clean)
    if clean.shape != poisoned.shape or clean.ndim != 1 or n < FEWEST_IMAGES:
        raise ConfigurationError(
            f"scores of the same {FEWEST_IMAGES} images or more are needed, clean and poisoned, "
            f"not {list(clean.shape)} and {list(poisoned.shape)}"
        )
    if not 0 < share < 1 or not 0 < (poisoned_images := round(share * n)) < n:
        raise ConfigurationError(f"share {share} of {n} images leaves none clean or none poisoned; choose another")
    areas = []
    for draw in range(draws):
        stream = fold(seed, "poison", draw)  # the word is part of the random seed and must stay
        order = np.argsort(uniforms(stream, start=0, stop=1, width=n)[0], kind="stable")
        known, unknown = clean[order[poisoned_images:]], poisoned[order[:poisoned_images]]
        split = mixture(torch.cat((known, unknown)), starts=STARTS_PER_DRAW, seed=stream)
        areas.append((quality(split.log_odds(known), split.log_odds(unknown)).auroc, quality(known, unknown).auroc))
    posterior, raw = (_summary(np.array(values), n) for values in zip(*areas, strict=True))
    return PoisonDetection(posterior, raw)


def _summary(values: np.ndarray, images: int) -> Summary:
    """Return the mean over the draws, their deviation, and the interval that holds the middle 95 % of them."""
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return Summary(float(values.mean()), deviation, float(low), float(high), images, 0)


NAMED = (
    SetMetric(
        name="poison",
        better="higher",
        needs="poisoned images",
        description="how well a mixture of uncertainties separates poisoned images: AUROC at 10 to 90 % poisoned",
        section="poison detection, appendix table 7",
    ),
)
