"""Calibration of certainty: do the shares of votes that an explanation states hold on fresh, independent repeats?

    error = Σ_b n_b/n · |mean v − mean f|            over bins b of v: the expected calibration error
    brier = mean of f(1 − v)² + (1 − f)v²            the Brier score of v for a fresh vote

v is the share of votes stated for a pixel, f the share that fresh repeats give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.types import ROUNDING, Explanation

if TYPE_CHECKING:
    from jaxtyping import Float


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """What was stated against what came, over all pixels of all images."""

    stated: Float[Tensor, " bins"]
    """Mean share of votes stated; NaN in a bin without pixels."""
    seen: Float[Tensor, " bins"]
    """Mean share of fresh votes for the same pixels."""
    pixels: Float[Tensor, " bins"]
    """Share of all pixels."""
    error: float
    brier: float
    flips: float
    """0 where there is no verdict to flip."""
    decided: float
    """Share of pixels with a verdict."""
    held: tuple[float | None, float | None]
    """Mean share of fresh votes where the verdict is −1 and where it is +1; None where there is none such."""


def calibration(
    stated: Sequence[Explanation], fresh: Sequence[Explanation], *, bins: int = 10, level: float = 0.95
) -> Calibration:
    """Explanations against others of the same images that share no randomness with them."""
    at_least("bins", bins, 1)
    if len(stated) != len(fresh) or not stated:
        raise ConfigurationError(f"{len(fresh)} explanations cannot judge {len(stated)}; give one for each")
    for one, other in zip(stated, fresh, strict=True):
        if one.photo.digest != other.photo.digest or one.importance.shape != other.importance.shape:
            raise ConfigurationError(
                f"{other.photo.name} cannot judge {one.photo.name}; give the same images, in order"
            )
        if one.provenance["seed"] == other.provenance["seed"]:
            raise ConfigurationError("the others must be fresh: give them another seed")
    v, f = (torch.cat([_share(one).double().flatten() for one in some]) for some in (stated, fresh))
    which = ((v + ROUNDING) * bins).long().clamp(0, bins - 1)
    pixels, sum_v, sum_f = (
        torch.zeros(bins, dtype=torch.float64).index_add(0, which, values) for values in (torch.ones_like(v), v, f)
    )
    before, after = (torch.cat([one.verdict(level).flatten() for one in some]) for some in (stated, fresh))
    decided = before != 0
    held = [float(f[before == sign].mean()) if (before == sign).any() else None for sign in (-1, 1)]
    return Calibration(
        stated=sum_v / pixels,
        seen=sum_f / pixels,
        pixels=pixels / len(v),
        error=float((sum_v - sum_f).abs().sum() / len(v)),
        brier=float((f * (1 - v) ** 2 + (1 - f) * v**2).mean()),
        flips=float((after[decided] == -before[decided]).double().mean()) if decided.any() else 0.0,
        decided=float(decided.double().mean()),
        held=(held[0], held[1]),
    )


def _share(explanation: Explanation) -> Tensor:
    if explanation.vote_share is None:
        raise ConfigurationError("only explanations that cast votes state how sure they are; use Repeat")
    return explanation.vote_share
