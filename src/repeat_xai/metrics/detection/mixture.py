"""Mixture of two normal distributions, which separates two groups of images by one score each, without labels.

    P(unknown | s) = w₂ N(s; μ₂, σ₂) / (w₁ N(s; μ₁, σ₁) + w₂ N(s; μ₂, σ₂))            μ₁ ≤ μ₂

The component with the higher mean is taken for that of unknown images, whose uncertainty is larger. Whether there are
two groups at all is judged by the Bayesian information criterion against a single normal distribution. A group must
have several different scores, because a distribution that shrinks onto a single score fits it as closely as one likes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.seeds import fold

if TYPE_CHECKING:
    from jaxtyping import Float

FEWEST_IMAGES = 4
"""The fewest images of a group, and the fewest in all, that say something about a distribution."""
STARTS = 10
"""Random starts of the fit, of which the best is kept."""
STRONG_EVIDENCE = 10.0
"""A gain in the criterion that counts as strong evidence (Kass and Raftery 1995)."""


@final
@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A mixture of two normal distributions: the component of known images first, that of unknown images second."""

    weights: tuple[float, float]
    means: tuple[float, float]
    deviations: tuple[float, float]
    gain: float
    """By how much the criterion prefers two components to one; below zero where one suffices."""
    fewer: int
    """Number of different scores in the smaller group."""

    @property
    def separates(self) -> bool:
        """Whether there is strong evidence of two groups of images."""
        return self.gain > STRONG_EVIDENCE and self.fewer >= FEWEST_IMAGES

    @property
    def statement(self) -> str:
        """The conclusion in a sentence."""
        if self.separates:
            return f"the scores form two groups: {self.weights[1]:.0%} of them are in the one with higher uncertainty"
        if self.gain > STRONG_EVIDENCE and self.fewer:
            scores = "1 distinct score lies" if self.fewer == 1 else f"{self.fewer} distinct scores lie"
            return f"{scores} apart from the rest, too few to count as a group"
        return "the scores form one group"

    @property
    def threshold(self) -> float | None:
        """The score between the means at which both components are equally likely; None where there is none."""
        low, high = self.means
        if not self._log_odds_at(low) < 0 < self._log_odds_at(high):
            return None
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self._log_odds_at(middle) < 0 else (low, middle)
        return (low + high) / 2

    def posterior(self, scores: Float[Tensor, " images"]) -> Float[Tensor, " images"]:
        """Return P(unknown | s) for each score s."""
        return self.log_odds(scores).sigmoid()

    def log_odds(self, scores: Float[Tensor, " images"]) -> Float[Tensor, " images"]:
        """Return ln P(unknown | s) / P(known | s), which orders scores even where the posterior rounds to 0 or 1."""
        known, unknown = (
            math.log(weight) - math.log(deviation) - ((scores.double() - mean) / deviation) ** 2 / 2
            for weight, mean, deviation in zip(self.weights, self.means, self.deviations, strict=True)
        )
        return unknown - known

    def density(self, scores: np.ndarray, kind: int) -> np.ndarray:
        """Return w N(s; μ, σ) of the component of known images (kind 0) or of unknown ones (kind 1)."""
        mean, deviation = self.means[kind], self.deviations[kind]
        peak = self.weights[kind] / (deviation * math.sqrt(2 * math.pi))
        height: np.ndarray = peak * np.exp(-(((scores - mean) / deviation) ** 2) / 2)
        return height

    def _log_odds_at(self, score: float) -> float:
        return self.log_odds(torch.tensor([score], dtype=torch.float64)).item()


def mixture(scores: Float[Tensor, " images"], *, starts: int = STARTS, seed: int = 0) -> Mixture:
    """Return the mixture that describes the scores best, out of `starts` fits with different random starts.

    >>> import torch
    >>> split = mixture(torch.cat((torch.linspace(0, 1, 30), torch.linspace(9, 10, 10))))
    >>> split.separates, round(split.weights[1], 2)
    (True, 0.25)
    """
    from sklearn.mixture import GaussianMixture

    values = scores.detach().double().cpu().numpy()
    if values.ndim != 1 or len(values) < FEWEST_IMAGES:
        raise ConfigurationError(
            f"a mixture needs the scores of {FEWEST_IMAGES} images or more, not {list(scores.shape)}"
        )
    if not np.isfinite(values).all():
        raise ConfigurationError("a score is NaN or infinite")
    centre, scale = float(values.mean()), float(values.std())
    if scale <= 1e-12 * max(1.0, abs(centre)):  # all scores are equal up to rounding, and nothing can be fitted
        tiny = abs(centre) * 1e-12 + 1e-300
        return Mixture(
            weights=(0.5, 0.5),
            means=(centre, centre),
            deviations=(tiny, tiny),
            gain=-math.inf,
            fewer=0,
        )
    rows = ((values - centre) / scale)[:, None]
    state = fold(seed, "mixture") % 2**32  # the word is part of the random seed and must stay
    single, double = (GaussianMixture(n, n_init=starts if n > 1 else 1, random_state=state).fit(rows) for n in (1, 2))
    order, kinds = np.argsort(double.means_[:, 0]), double.predict(rows)
    weights, means, deviations = (
        tuple(float(v) for v in parameter[order])
        for parameter in (
            double.weights_,
            double.means_[:, 0] * scale + centre,
            np.sqrt(double.covariances_[:, 0, 0]) * scale,
        )
    )
    return Mixture(
        weights=(weights[0], weights[1]),
        means=(means[0], means[1]),
        deviations=(deviations[0], deviations[1]),
        gain=float(single.bic(rows) - double.bic(rows)),
        fewer=min(len(np.unique(values[kinds == kind])) for kind in (0, 1)),
    )
