"""REPEAT (Wickstrøm et al. 2025): every pixel is a Bernoulli variable, important or not.

    I(k) = 1 where R(k) ≥ τ(k), else 0            W(k) = R(k) / max R(k)
    p = (1/K) Σ_k I(k)·W(k)                       U = p(1 − p)

R(k) is the k-th run of a stochastic base method and τ(k) its own threshold. Binary votes leave W out, which makes p
the mean of true Bernoulli samples.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.encoders.calls import metering
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Answer, Estimate, only, stream
from repeat_xai.errors import ConfigurationError, EncoderError, at_least, choose
from repeat_xai.methods.base import Importance, deterministic, importance_of, name_of
from repeat_xai.methods.fast_estimator import FEWEST, MOST_POOL, Pooled
from repeat_xai.methods.provenance import Maps, explained
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.methods.votes import Votes, indicator, weights
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Explanation, Image, expect, expect_encoder

if TYPE_CHECKING:
    from repeat_xai.types import Map

Estimator = Literal["exact", "fast"]
DETERMINISTIC = "finds the same whatever the seed: all repeats would vote alike; use Spread for its uncertainty"


@final
@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Importance as the share of repeats that call a pixel important, uncertainty as their disagreement."""

    stochastic: ClassVar[bool] = True
    citation: ClassVar[str] = "Wickstrøm et al. 2025"

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
        if deterministic(self.base):
            raise ConfigurationError(f"{name_of(self.base)} {DETERMINISTIC}")
        choose("estimator", self.estimator, get_args(Estimator))
        choose("threshold", self.threshold, THRESHOLDS)
        choose("votes", self.votes, get_args(Votes))
        if self.pool != "auto":
            at_least("pool", self.pool, 1, MOST_POOL)
        if self.tolerance is not None and not 0 < self.tolerance < math.inf:
            raise ConfigurationError(f"tolerance must be a number above zero, not {self.tolerance}")

    @property
    def gradients(self) -> bool:
        """Whether its base needs them."""
        return bool(getattr(self.base, "gradients", False))

    @property
    def calls(self) -> int | None:
        """Encoder calls per image, at most, where that is known beforehand."""
        if isinstance(self.base, Relax):
            return self._pooled(self.base).calls if self._fast else self.repeats * self.base.masks + 1
        base = getattr(self.base, "calls", None)
        return None if base is None else self.repeats * int(base)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        return only(self.answers(encoder, (image,), seed=seed))

    def stream(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Explanation]:
        """Many images, in order: on a GPU several are under way at once, so that it never waits."""
        for answer in self.answers(encoder, images, seed=seed):
            yield only(iter((answer,)))

    def answers(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Answer[Explanation]]:
        """The same, each with what it cost, or why it failed."""
        expect_encoder(encoder)
        if self.estimator == "fast" and not self._fast:
            needed = f"the fast estimator needs Relax of {FEWEST} masks or more as its base: exact repeats are used"
            warnings.warn(needed, stacklevel=2)
        if isinstance(self.base, Relax):
            estimate = partial(self._pooled(self.base).estimate if self._fast else self._exact, seed=seed)
            found = stream(encoder, images, estimate, self.base.plan._replace(calls=self.calls or 0))
        else:
            found = (self._run(encoder, image, seed=seed) for image in images)
        return explained(found, self, encoder, seed=seed)

    @property
    def _fast(self) -> bool:
        return self.estimator == "fast" and isinstance(self.base, Relax) and self.base.masks >= FEWEST

    def _exact(self, basis: Basis, image: Image, *, seed: int) -> Estimate[Maps]:
        """K runs of RELAX."""
        assert isinstance(self.base, Relax)
        p = share = torch.zeros((), dtype=torch.float64, device=basis.rows.device)
        for repeat in range(self.repeats):
            moments = yield from self.base.moments(basis, image, seed=fold(seed, "repeat", repeat))
            p, share = self._voted(self.base.importance(moments), p, share)
        p, share = yield torch.stack((p, share))
        return Maps(p, p * (1 - p), share)

    def _run(self, encoder: Encoder, image: Image, *, seed: int) -> Answer[Maps]:
        """K runs of any base."""
        expect(encoder, image)
        p = share = torch.zeros((), dtype=torch.float64)
        found: Map | None = None
        silent = not hasattr(self.base, "stochastic")
        with metering() as meter:
            try:
                for repeat in range(self.repeats):
                    before, found = found, importance_of(self.base, encoder, image, seed=fold(seed, "repeat", repeat))
                    if silent and before is not None and found.equal(before) and found.amin() < found.amax():
                        raise ConfigurationError(f"the base {DETERMINISTIC}")
                    p, share = self._voted(found, p, share)
            except EncoderError as error:
                return Answer(image=image, result=error)
        return Answer(image=image, result=Maps(p, p * (1 - p), share), calls=meter.calls, seconds=meter.seconds)

    def _voted(self, importance: Map, p: Tensor, share: Tensor) -> tuple[Map, Map]:
        """One repeat's votes added."""
        chosen = indicator(importance[None], self.threshold)[0].double()
        return p + chosen * weights(importance[None], self.votes)[0] / self.repeats, share + chosen / self.repeats

    def _pooled(self, base: Relax) -> Pooled:
        return Pooled(
            base=base,
            threshold=self.threshold,
            votes=self.votes,
            repeats=self.repeats,
            pool=None if self.pool == "auto" else self.pool,
            tolerance=self.tolerance,
        )
