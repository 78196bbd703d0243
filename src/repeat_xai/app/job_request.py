"""What is asked for: which encoder, which method, with how much work, from which seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

from repeat_xai.experiments.settings import Network
from repeat_xai.methods.base import Method
from repeat_xai.methods.method_names import METHODS, MethodSettings, stochastic_bases
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Estimator, Repeat
from repeat_xai.seeds import expect_seed

NAMES = (*METHODS, *(f"repeat:{name}" for name in stochastic_bases()))
"""Every method, and REPEAT over those that can be its base."""


@final
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much work a method is given, as far as it knows of it."""

    estimator: Estimator = "fast"
    masks: int = 1000
    repeats: int = 10
    pool: int | Literal["auto"] = "auto"
    passes: int = 10


@final
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One explanation."""

    network: Network
    method: str
    budget: Budget = Budget()
    seed: int = 0

    def __post_init__(self) -> None:
        expect_seed(self.seed)
        _ = self.explainer

    @property
    def explainer(self) -> Method:
        """The method of that name, with that budget."""
        budget = self.budget
        relax = Relax(masks=budget.masks)
        repeat = Repeat(base=relax, estimator=budget.estimator, repeats=budget.repeats, budget=budget.pool)
        return MethodSettings(repeat=repeat, relax=relax, passes=budget.passes).method(self.method)


class Knows(NamedTuple):
    """What of a budget methods know of."""

    estimator: bool
    pool: bool
    masks: bool
    repeats: bool
    passes: bool


def knows(methods: Iterable[str], estimator: str) -> Knows:
    """What is used of a budget by any of these methods.

    >>> knows({"repeat"}, "exact")
    Knows(estimator=True, pool=False, masks=True, repeats=True, passes=False)
    """
    names = set(methods)
    votes = "repeat" in names
    others = any(name not in ("repeat", "relax") and not name.startswith("repeat:") for name in names)
    return Knows(
        estimator=votes,
        pool=votes and estimator == "fast",
        masks=votes or "relax" in names,
        repeats=any(name.partition(":")[0] == "repeat" for name in names),
        passes=others,
    )
