"""Two kinds of image told apart by one number each, without labels: a mixture of two normal distributions.

    P(unknown | s) = w₂ N(s; μ₂, σ₂) / (w₁ N(s; μ₁, σ₁) + w₂ N(s; μ₂, σ₂))            μ₁ ≤ μ₂

The component of the higher mean is the unknown one: uncertainty is larger there. Whether there are two kinds at all is
judged by the Bayesian information criterion against a single normal distribution; a kind is of several images, as a
distribution shrunk onto one of them, or onto copies of it, explains those as well as one likes.
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

FEWEST = 4
"""Images of a kind, and of all: fewer say nothing about a distribution."""
STARTS = 10
STRONG = 10.0
"""A gain in the criterion that counts as strong evidence (Kass and Raftery 1995)."""


@final
@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The known component first, the unknown one second."""

    weights: tuple[float, float]
    means: tuple[float, float]
    deviations: tuple[float, float]
    gain: float
    """By how much the criterion prefers two components to one; below zero where one will do."""
    fewer: int
    """Images of the smaller kind, those of equal scores counted once."""

    @property
    def separates(self) -> bool:
        """Whether there is strong evidence of two kinds."""
        return self.gain > STRONG and self.fewer >= FEWEST

    @property
    def statement(self) -> str:
        """What may be said of it, plainly."""
        if self.separates:
            return f"two kinds of image: {self.weights[1]:.0%} lie in the component of higher uncertainty"
        if self.gain > STRONG:
            return f"images that stand apart: {self.fewer}, too few to be a kind of their own"
        return "no two kinds of image: one normal distribution describes the scores about as well as two"

    @property
    def threshold(self) -> float | None:
        """The score between the means at which both are as likely; None where there is none."""
        low, high = self.means
        if not self._odds(low) < 0 < self._odds(high):
            return None
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self._odds(middle) < 0 else (low, middle)
        return (low + high) / 2

    def posterior(self, scores: Float[Tensor, " images"]) -> Float[Tensor, " images"]:
        """P(unknown | s)."""
        return self.log_odds(scores).sigmoid()

    def log_odds(self, scores: Float[Tensor, " images"]) -> Float[Tensor, " images"]:
        """ln P(unknown | s) / P(known | s): in the posterior's order, also where that is 1 as far as can be told."""
        known, unknown = (
            math.log(weight) - math.log(deviation) - ((scores.double() - mean) / deviation) ** 2 / 2
            for weight, mean, deviation in zip(self.weights, self.means, self.deviations, strict=True)
        )
        return unknown - known

    def density(self, scores: np.ndarray, kind: int) -> np.ndarray:
        """w N(s; μ, σ) of the known kind, 0, or the unknown one, 1."""
        mean, deviation = self.means[kind], self.deviations[kind]
        peak = self.weights[kind] / (deviation * math.sqrt(2 * math.pi))
        height: np.ndarray = peak * np.exp(-(((scores - mean) / deviation) ** 2) / 2)
        return height

    def _odds(self, score: float) -> float:
        return self.log_odds(torch.tensor([score], dtype=torch.float64)).item()


def mixture(scores: Float[Tensor, " images"], *, starts: int = STARTS, seed: int = 0) -> Mixture:
    """The mixture that describes the scores best, of those found from so many starts."""
    from sklearn.mixture import GaussianMixture

    values = scores.detach().double().cpu().numpy()
    if values.ndim != 1 or len(values) < FEWEST:
        raise ConfigurationError(f"a mixture needs the scores of {FEWEST} images or more, not {list(scores.shape)}")
    if not np.isfinite(values).all():
        raise ConfigurationError("a score is NaN or infinite")
    centre, scale = float(values.mean()), float(values.std())
    if scale <= 1e-12 * max(1.0, abs(centre)):
        same = abs(centre) * 1e-12 + 1e-300
        return Mixture(
            weights=(0.5, 0.5),
            means=(centre, centre),
            deviations=(same, same),
            gain=-math.inf,
            fewer=0,
        )
    rows = ((values - centre) / scale)[:, None]
    state = fold(seed, "mixture") % 2**32
    one, two = (GaussianMixture(n, n_init=starts if n > 1 else 1, random_state=state).fit(rows) for n in (1, 2))
    order, kinds = np.argsort(two.means_[:, 0]), two.predict(rows)
    weights, means, deviations = (
        tuple(float(v) for v in parameter[order])
        for parameter in (two.weights_, two.means_[:, 0] * scale + centre, np.sqrt(two.covariances_[:, 0, 0]) * scale)
    )
    return Mixture(
        weights=(weights[0], weights[1]),
        means=(means[0], means[1]),
        deviations=(deviations[0], deviations[1]),
        gain=float(one.bic(rows) - two.bic(rows)),
        fewer=min(len(np.unique(values[kinds == kind])) for kind in (0, 1)),
    )
