"""REPEAT (Wickstrøm et al. 2025): every pixel is a Bernoulli variable, important or not.

    I(k) = 1 where R(k) ≥ τ(k), else 0            W(k) = R(k) / max R(k)
    p = (1/K) Σ_k I(k)·W(k)                       U = p(1 − p)

R(k) is the k-th run of a stochastic base method and τ(k) its own threshold. Binary votes leave W out, which makes p
the mean of true Bernoulli samples.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.calls import metering
from repeat_xai.errors import ConfigurationError, EncoderError, at_least, choose
from repeat_xai.explain.pool import Pooled
from repeat_xai.explain.votes import Votes, indicator, weights
from repeat_xai.importance.relax import Relax
from repeat_xai.provenance import record
from repeat_xai.seeds import fold
from repeat_xai.thresholds import THRESHOLDS
from repeat_xai.types import Encoder, Explanation, Image, Importance, expect

if TYPE_CHECKING:
    from repeat_xai.types import Map

Estimator = Literal["exact", "fast"]


@final
@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Importance as the share of repeats that call a pixel important, uncertainty as their disagreement."""

    base: Importance = Relax()
    estimator: Estimator = "fast"
    """`exact` runs the base `repeats` times; `fast` estimates the same votes from one designed pool of masks."""
    repeats: int = 10
    """How often the base is run; for `fast`, how many repeats an automatic pool is to be as accurate as."""
    threshold: str = "mean"
    votes: Votes = "weighted"
    pool: int | Literal["auto"] = "auto"
    """For `fast`: how many masks, in whole blocks, or as many as the error of p asks."""
    tolerance: float | None = None
    """For `fast`: the error of p at which an automatic pool stops, in place of that of `repeats` repeats."""

    def __post_init__(self) -> None:
        at_least("repeats", self.repeats, 1)
        if isinstance(self.base, type) or not callable(self.base):
            raise ConfigurationError(f"base must be an importance method, such as Relax(), not {self.base!r}")
        choose("estimator", self.estimator, get_args(Estimator))
        choose("threshold", self.threshold, THRESHOLDS)
        choose("votes", self.votes, get_args(Votes))
        if self.pool != "auto":
            at_least("pool", self.pool, 1)
        if self.tolerance is not None and self.tolerance <= 0:
            raise ConfigurationError(f"tolerance must be above zero, not {self.tolerance}")

    @property
    def calls(self) -> int | None:
        """Encoder calls per image, at most, where that is known beforehand."""
        if self.estimator == "fast" and isinstance(self.base, Relax):
            return self._pooled(self.base).calls
        base = getattr(self.base, "calls", None)
        return None if base is None else self.repeats * int(base)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        expect(encoder, image)
        about: dict[str, Any] = {}
        with metering() as meter:
            if self.estimator == "fast" and isinstance(self.base, Relax):
                tally, about = self._pooled(self.base)(encoder, image, seed=seed)
                p, share = tally.p.cpu(), tally.vote_share.cpu()
            else:
                if self.estimator == "fast":
                    warnings.warn("the fast estimator needs Relax as its base; exact repeats are used", stacklevel=2)
                p, share = self._exact(encoder, image, seed=seed)
        return Explanation(
            importance=p.float(),
            uncertainty=(p * (1 - p)).float(),
            vote_share=share.float(),
            photo=image.photo,
            provenance=record(self, encoder, image, seed=seed, meter=meter) | ({"pool": about} if about else {}),
        )

    def _exact(self, encoder: Encoder, image: Image, *, seed: int) -> tuple[Map, Map]:
        p = share = torch.zeros(image.pixels.shape[1:], dtype=torch.float64)
        for repeat in range(self.repeats):
            importance = self._base_map(encoder, image, seed=fold(seed, "repeat", repeat))[None]
            chosen = indicator(importance, self.threshold)[0].double()
            p = p + chosen * weights(importance, self.votes)[0] / self.repeats
            share = share + chosen / self.repeats
        return p, share

    def _pooled(self, base: Relax) -> Pooled:
        return Pooled(
            base=base,
            threshold=self.threshold,
            votes=self.votes,
            repeats=self.repeats,
            pool=None if self.pool == "auto" else self.pool,
            tolerance=self.tolerance,
        )

    def _base_map(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        found = self.base(encoder, image, seed=seed)
        if not isinstance(found, Tensor) or found.shape != image.pixels.shape[1:]:
            shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ConfigurationError(f"the base gave {shape}, not a map of {list(image.pixels.shape[1:])}")
        if not found.isfinite().all():
            raise EncoderError(f"{image.photo.name}: the base gave a map with NaN or infinite values")
        return found.detach().double().cpu()
