"""REPEAT (Wickstrøm et al. 2025) treats every pixel as a Bernoulli variable: important, or not.

    I(k) = 1 where R(k) ≥ τ(k), else 0            W(k) = R(k) / max R(k)
    p = (1/K) Σ_k I(k)·W(k)                       U = p(1 − p)

R(k) is the k-th run of a stochastic base method, and τ(k) is the cut of that run's own map. Binary votes leave W out,
which makes p the mean of true Bernoulli samples. Over RELAX with a target other than the image itself, the weight W is
another one (`votes.py`), and an explanation has the effect of its base too: for exact repeats, the mean over repeats.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.engine.batches import Plan
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Estimate, Progress, run_estimates
from repeat_xai.errors import ConfigurationError, at_least, choose, expect_number
from repeat_xai.methods.base import (
    Base,
    answer_each,
    expect_base,
    explain_image,
    explain_images,
    importance_of,
    is_deterministic,
    name_of,
    with_codes,
)
from repeat_xai.methods.fast_estimator import FEWEST_MASKS, MAX_BUDGET, NOT_SHARED, FastEstimator, SharedSums
from repeat_xai.methods.provenance import MethodMaps, explanations
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.thresholds import Threshold, expect_threshold
from repeat_xai.methods.votes import Votes, Zero, indicator, weights
from repeat_xai.seeds import fold
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, expect_encoder

if TYPE_CHECKING:
    from repeat_xai.types import Map

Estimator = Literal["exact", "fast"]
SAME_MAPS = "gives the same map whatever the seed, so all repeats would vote alike; use Spread for its uncertainty"


@final
@dataclass(frozen=True, kw_only=True)
class Repeat:
    """REPEAT: the repeats of a stochastic method vote on which pixels are important.

    The importance p is the share of repeats that call a pixel important, each vote weighted by its strength unless
    votes are binary. The uncertainty is p(1 − p). With binary votes it says how far the repeats disagree; with weighted
    votes it is also above 0 where they agree but p lies between 0 and 1.
    """

    title: ClassVar[str] = "REPEAT"
    stochastic: ClassVar[bool] = True
    citation: ClassVar[str] = "Wickstrøm et al. 2025"

    base: Base = Relax()
    """The stochastic method that is repeated."""
    estimator: Estimator = "fast"
    """`exact` runs the base `repeats` times; `fast` estimates their votes from one set of masks."""
    repeats: int = 10
    """Number of repeats K. For `fast`: the number of repeats that the automatic budget is to be as accurate as."""
    threshold: Threshold = "mean"
    """How the cut of a map is found: a name in `THRESHOLDS`, or a function from maps [n, height, width] to n cuts."""
    votes: Votes = "weighted"
    """Whether a vote counts by the pixel's importance, as in the paper, or each vote alike (`binary`)."""
    budget: int | Literal["auto"] = "auto"
    """For `fast`: the number of masks, rounded up to whole blocks. With `auto`, masks are added until the estimate is
    as accurate as `repeats` exact repeats, or reaches the tolerance."""
    tolerance: float | None = None
    """For `fast`: the error of p at which an automatic budget stops, in place of the error of `repeats` repeats."""

    def __post_init__(self) -> None:
        at_least("repeats", self.repeats, 1)
        expect_base(self.base)
        if is_deterministic(self.base):
            raise ConfigurationError(f"{name_of(self.base)} {SAME_MAPS}")
        choose("estimator", self.estimator, get_args(Estimator))
        expect_threshold(self.threshold)
        choose("votes", self.votes, get_args(Votes))
        if self.budget != "auto":
            at_least("budget", self.budget, 1, MAX_BUDGET)
        if self.tolerance is not None:
            expect_number("tolerance", self.tolerance)
            if self.tolerance <= 0:
                raise ConfigurationError(f"tolerance must be above zero, not {self.tolerance}")

    @property
    def gradients(self) -> bool:
        """Whether the base needs gradients."""
        return bool(getattr(self.base, "gradients", False))

    @property
    def is_fast(self) -> bool:
        """Whether the fast estimator is used: it needs RELAX with enough masks as its base."""
        return self.estimator == "fast" and isinstance(self.base, Relax) and self.base.masks >= FEWEST_MASKS

    @property
    def finds_budget(self) -> bool:
        """Whether masks are added until the estimate is accurate, so that `calls` is only a limit."""
        return self.is_fast and self.budget == "auto"

    @property
    def calls(self) -> int | None:
        """Encoder calls for an image, at most; None where that is not known beforehand."""
        if isinstance(self.base, Relax):
            return self.fast_estimator.calls if self.is_fast else self.repeats * self.base.masks + 1
        calls = getattr(self.base, "calls", None)
        return None if calls is None else self.repeats * int(calls)

    @property
    def plan(self) -> Plan:
        """How the engine is to run the masked copies of an image; only for REPEAT over RELAX."""
        assert isinstance(self.base, Relax)
        return self.base.plan._replace(calls=self.calls or 0)

    __call__ = explain_image
    stream = explain_images

    def answers(
        self, encoder: Encoder, tasks: Iterable[Task], *, seed: int, progress: Progress | None = None
    ) -> Iterator[Answer[Explanation]]:
        """Yield an answer for each task, in order; an image that cannot be explained is answered with its error."""
        expect_encoder(encoder)
        if self.estimator == "fast" and not self.is_fast:
            needed = f"the fast estimator needs Relax of {FEWEST_MASKS} masks or more as its base"
            warnings.warn(f"{needed}: exact repeats are used", stacklevel=2)
        if isinstance(self.base, Relax):
            maps = run_estimates(encoder, tasks, partial(self.estimate, seed=seed), self.plan, progress)
        else:
            run = partial(self._repeated, with_codes(self.base, encoder), encoder, seed=seed)
            maps = answer_each(encoder, tasks, run)
        return explanations(maps, self, encoder, seed=seed)

    def estimate(
        self, basis: Basis, image: Image, *, seed: int, shared: SharedSums = NOT_SHARED
    ) -> Estimate[MethodMaps]:
        """Ask for the similarities that the votes over RELAX need, and return the maps.

        `shared` is given to all estimates of one image that differ in their targets only.
        """
        if self.is_fast:
            return self.fast_estimator.estimate(basis, image, seed=seed, shared=shared)
        return self._exact(basis, image, seed=seed)

    @property
    def fast_estimator(self) -> FastEstimator:
        """How votes over RELAX are estimated from one set of masks."""
        assert isinstance(self.base, Relax)
        return FastEstimator(
            base=self.base,
            threshold=self.threshold,
            votes=self.votes,
            repeats=self.repeats,
            budget=None if self.budget == "auto" else self.budget,
            tolerance=self.tolerance,
        )

    def _exact(self, basis: Basis, image: Image, *, seed: int) -> Estimate[MethodMaps]:
        """Run RELAX K times."""
        assert isinstance(self.base, Relax)
        p = share = effect = torch.zeros((), dtype=torch.float64, device=basis.rows.device)
        for repeat in range(self.repeats):
            moments = yield from self.base.moments(basis, image, seed=fold(seed, "repeat", repeat))
            p, share = self._with_votes(self.base.mean_similarity(moments), p, share, zero=self.base.zero)
            if self.base.target is not None:
                effect = effect + self.base.effect(moments) / self.repeats
        if self.base.target is None:
            p, share = yield torch.stack((p, share))
            return MethodMaps(p, p * (1 - p), share)
        p, share, effect = yield torch.stack((p, share, effect))
        return MethodMaps(p, p * (1 - p), share, effect)

    def _repeated(self, base: Base, encoder: Encoder, image: Image, *, seed: int) -> MethodMaps:
        """Run any base K times; its target is given as codes."""
        p = share = torch.zeros((), dtype=torch.float64)
        previous: Map | None = None
        undeclared = not hasattr(self.base, "stochastic")
        for repeat in range(self.repeats):
            importance = importance_of(base, encoder, image, seed=fold(seed, "repeat", repeat))
            same = undeclared and previous is not None and importance.equal(previous)
            if same and importance.amin() < importance.amax():
                raise ConfigurationError(f"the base {SAME_MAPS}")
            p, share = self._with_votes(importance, p, share)
            previous = importance
        return MethodMaps(p, p * (1 - p), share)

    def _with_votes(self, importance: Map, p: Tensor, share: Tensor, zero: Zero = "zero") -> tuple[Map, Map]:
        """Return p and the share of votes with the votes of one repeat added."""
        votes = indicator(importance[None], self.threshold)[0].double()
        return p + votes * weights(importance[None], self.votes, zero)[0] / self.repeats, share + votes / self.repeats
