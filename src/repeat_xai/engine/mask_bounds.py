"""Bounds on the number N of masks for which |R − E R| < t with probability 1 − δ, for R = (1/N) Σ s·M.

    paper        (b − a) ln(2/δ) / 2t²                        Theorem 2 as printed
    mcdiarmid    (max(b, 0) − min(a, 0))² ln(2/δ) / 2t²       what its proof supports
    empirical    (z σ / t)²                                    the central limit theorem with the measured deviation

Similarities lie in [a, b]. The printed bound lacks a square, and it uses the range of s where the summand is s·M with
M in [0, 1], whose range includes zero. The empirical number is no bound, but holds for large N. It is the useful one
for a user who has measured σ, the standard deviation of s·M at the most variable pixel. z is the normal quantile for
1 − δ/2 (1.96 for δ = 0.05).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.engine.batches import Plan
from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.masks import Basis, Grid
from repeat_xai.engine.scheduler import Estimate, run_estimates
from repeat_xai.errors import ConfigurationError
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, Task, result_of

if TYPE_CHECKING:
    from jaxtyping import Float


def paper(*, low: float, high: float, error: float, risk: float) -> int:
    """Return the number of masks of Theorem 2 as printed, which are too few for what it promises.

    >>> paper(low=0.5, high=0.84, error=0.035, risk=0.05)
    512
    """
    _check(low, high, error, risk)
    return math.ceil((high - low) * math.log(2 / risk) / (2 * error**2))


def mcdiarmid(*, low: float, high: float, error: float, risk: float) -> int:
    """Return the number of masks by McDiarmid's inequality, with the range of s·M.

    >>> mcdiarmid(low=0.5, high=0.84, error=0.035, risk=0.05)
    1063
    """
    _check(low, high, error, risk)
    return math.ceil((max(high, 0.0) - min(low, 0.0)) ** 2 * math.log(2 / risk) / (2 * error**2))


def empirical(*, deviation: float, error: float, risk: float) -> int:
    """Return the number of masks that make the standard error small enough, given the deviation of s·M.

    >>> empirical(deviation=0.35, error=0.035, risk=0.05)
    385
    """
    _check(0.0, deviation, error, risk)
    return math.ceil((NormalDist().inv_cdf(1 - risk / 2) * deviation / error) ** 2)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarityRange:
    """Similarities between images and their masked copies, on which the bounds depend."""

    low: float
    high: float
    deviation: float
    """Upper limit of the standard deviation of s·M at the most variable pixel of any image, from M² ≤ M."""
    similarities: Float[Tensor, "images masks"]


def similarity_range(
    encoder: Encoder,
    images: Iterable[Image],
    *,
    masks: int = 1000,
    grid: Grid = Grid(),
    similarity: Kernel = Cosine(),
    chunk: int | None = None,
    seed: int,
) -> SimilarityRange:
    """Measure how similar images stay under random masks, as in figure 1 of the paper's appendix."""

    def estimate(basis: Basis, image: Image) -> Estimate[tuple[Tensor, float]]:
        values, sums = [], torch.zeros((), device=encoder.device)
        for draws in basis.row(masks, seed=fold(seed, image.photo.digest)):
            s = yield draws
            values.append(s)
            sums = sums + basis.sums(draws, torch.stack((s, s**2), 1))
        first, second = basis.maps(sums) / masks
        deviation = (second - first**2).amax().clamp_min(0).sqrt()
        on_host = yield torch.cat((*values, deviation[None]))
        return on_host[:-1], on_host[-1].item()

    plan = Plan(grid, similarity, chunk, masks + 1)
    results = [result_of(answer) for answer in run_estimates(encoder, map(Task, images), estimate, plan)]
    if not results:
        raise ConfigurationError("give at least one image to measure similarities on")
    similarities = torch.stack([values for values, _ in results])
    return SimilarityRange(
        low=similarities.min().item(),
        high=similarities.max().item(),
        deviation=max(deviation for _, deviation in results),
        similarities=similarities,
    )


def _check(low: float, high: float, error: float, risk: float) -> None:
    """Refuse numbers for which there is no bound."""
    if not low <= high or error <= 0 or not 0 < risk < 1:
        raise ConfigurationError(f"no bound for low={low}, high={high}, error={error}, risk={risk}")
