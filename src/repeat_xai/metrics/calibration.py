"""Calibration of an explanation's votes: is the stated share of votes the share that fresh, independent repeats give?

The expected calibration error (Naeini et al. 2015) and the Brier score are

    error = Σ_b n_b/n · |mean v − mean f|            over bins b of v: the expected calibration error
    brier = mean of f(1 − v)² + (1 − f)v²            the Brier score of v for a fresh vote

v is the share of votes that an explanation states for a pixel, f the share that fresh repeats give the same pixel, and
n the number of pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics.metric import EncoderMetric, ExplainingMethod, ScoredMap
from repeat_xai.seeds import fold
from repeat_xai.types import ROUNDING, Encoder, Explanation, Image

if TYPE_CHECKING:
    from jaxtyping import Float

BINS = 10


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Stated shares of votes compared with those of fresh repeats, over all pixels of all images."""

    stated: Float[Tensor, " bins"]
    """Mean stated share of votes in each bin; NaN in a bin without pixels."""
    observed: Float[Tensor, " bins"]
    """Mean share of fresh votes for the same pixels."""
    pixels: Float[Tensor, " bins"]
    """Share of all pixels in each bin."""
    error: float
    """The expected calibration error."""
    brier: float
    """The Brier score of the stated share for a fresh vote."""
    flips: float
    """Share of the pixels with a verdict whose verdict fresh repeats reverse; 0 where no pixel has one."""
    decided: float
    """Share of pixels with a verdict."""
    held: tuple[float | None, float | None]
    """Mean share of fresh votes where the verdict is −1 and where it is +1; None where no pixel has that verdict."""


def calibration(
    stated: Sequence[Explanation], fresh: Sequence[Explanation], *, bins: int = BINS, level: float = 0.95
) -> Calibration:
    """Return how well explanations state the share of votes that fresh explanations of the same images find.

    `fresh` are explanations of the same images, in order, with another seed. `level` is that of the verdicts.

    Range of the error: 0, calibrated, to 1; of the Brier score: 0 to 1. Lower is better for both. Explanations without
    votes have no calibration and are refused.

    >>> import repeat_xai as rx, torch
    >>> encoder = rx.load_encoder(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()))
    >>> image = rx.load_image(torch.arange(192.0).view(3, 8, 8) / 192, encoder)
    >>> method = rx.Repeat(estimator="exact", repeats=4, base=rx.Relax(masks=50))
    >>> result = calibration([method(encoder, image, seed=0)], [method(encoder, image, seed=1)])
    >>> 0 <= result.error <= 1
    True
    """
    at_least("bins", bins, 1)
    if len(stated) != len(fresh) or not stated:
        raise ConfigurationError(f"{len(fresh)} explanations cannot judge {len(stated)}; give one for each")
    for judged, judge in zip(stated, fresh, strict=True):
        if judged.photo.digest != judge.photo.digest or judged.importance.shape != judge.importance.shape:
            raise ConfigurationError(
                f"{judge.photo.name} cannot judge {judged.photo.name}; give the same images, in order"
            )
        if judged.provenance["seed"] == judge.provenance["seed"]:
            raise ConfigurationError("the fresh explanations have the same seed; give them another seed")
    v, f = (torch.cat([_vote_share(e).double().flatten() for e in explanations]) for explanations in (stated, fresh))
    # A share such as 3/10 may lie just below its bin in float32, so it is raised by the rounding error first.
    bin_of = ((v + ROUNDING) * bins).long().clamp(0, bins - 1)
    pixels, sum_v, sum_f = (
        torch.zeros(bins, dtype=torch.float64).index_add(0, bin_of, values) for values in (torch.ones_like(v), v, f)
    )
    before, after = (torch.cat([e.verdict(level).flatten() for e in explanations]) for explanations in (stated, fresh))
    decided = before != 0
    held = [float(f[before == sign].mean()) if (before == sign).any() else None for sign in (-1, 1)]
    return Calibration(
        stated=sum_v / pixels,
        observed=sum_f / pixels,
        pixels=pixels / len(v),
        error=float((sum_v - sum_f).abs().sum() / len(v)),
        brier=float((f * (1 - v) ** 2 + (1 - f) * v**2).mean()),
        flips=float((after[decided] == -before[decided]).double().mean()) if decided.any() else 0.0,
        decided=float(decided.double().mean()),
        held=(held[0], held[1]),
    )


def _vote_share(explanation: Explanation) -> Tensor:
    if explanation.vote_share is None:
        raise ConfigurationError("calibration judges shares of votes, and this method casts no votes; use Repeat")
    return explanation.vote_share


@final
@dataclass(frozen=True, kw_only=True)
class CalibrationScore:
    """The expected calibration error of a method's votes for one image."""

    bins: int = BINS

    def __post_init__(self) -> None:
        at_least("bins", self.bins, 1)

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> dict[ScoredMap, float]:
        """Return the error against fresh exact repeats, as many as the method has, drawn from another seed."""
        stated = method(encoder, image, seed=seed)
        _vote_share(stated)  # refuses a method without votes before the fresh repeats are run
        # The fast estimator casts no votes: it estimates their share, and it is exact repeats that it must predict.
        fresh_method = replace(method, estimator="exact") if isinstance(method, Repeat) else method
        fresh = fresh_method(encoder, image, seed=fold(seed, "calibration"))
        return {"vote_share": calibration([stated], [fresh], bins=self.bins).error}


NAMED = (
    EncoderMetric(
        name="calibration",
        better="lower",
        needs="votes",
        description="error of the stated share of votes against fresh repeats",
        citation="Naeini et al. 2015",
        maps=("vote_share",),
        score=CalibrationScore(),
    ),
)
