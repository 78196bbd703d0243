"""Requests for explanations: which encoder, which method with which settings, and which seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.methods.base import Method
from repeat_xai.methods.method_names import METHODS, MethodSettings, parse, stochastic_bases
from repeat_xai.methods.provenance import configuration
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Estimator, Repeat
from repeat_xai.output.figures.captions import method_title
from repeat_xai.seeds import expect_seed


def offered_methods() -> list[str]:
    """Return the names of all methods on offer: each registered one, and REPEAT over each further base."""
    return [*METHODS, *(f"repeat:{base}" for base in stochastic_bases())]


@final
@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """How much work a method does. Each method uses some of these settings and ignores the others."""

    estimator: Estimator = "fast"
    masks: int = 1000
    repeats: int = 10
    budget: int | Literal["auto"] = "auto"
    passes: int = 10


@final
@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """One explanation that a user asks for."""

    encoder_spec: EncoderSpec
    method: str
    settings: JobSettings = JobSettings()
    seed: int = 0

    def __post_init__(self) -> None:
        expect_seed(self.seed)
        _ = self.explainer  # an invalid setting is reported here

    @property
    def explainer(self) -> Method:
        """The method object of that name with these settings."""
        settings = self.settings
        relax = Relax(masks=settings.masks)
        repeat = Repeat(base=relax, estimator=settings.estimator, repeats=settings.repeats, budget=settings.budget)
        return MethodSettings(repeat=repeat, relax=relax, passes=settings.passes).method(self.method)


class UsedSettings(NamedTuple):
    """Which settings are used by the chosen methods, so that the form shows no others."""

    estimator: bool
    budget: bool
    masks: bool
    repeats: bool
    passes: bool


def used_settings(methods: Iterable[str], estimator: str) -> UsedSettings:
    """Return which settings are used by any of these methods.

    >>> used_settings({"repeat"}, "exact")
    UsedSettings(estimator=True, budget=False, masks=True, repeats=True, passes=False)
    """
    names = [parse(name) for name in methods]
    repeat_over_relax = parse("repeat") in names
    return UsedSettings(
        estimator=repeat_over_relax,
        budget=repeat_over_relax and estimator == "fast",
        masks=any(name.base in ("repeat", "relax") for name in names),
        repeats=any("repeat" in (name.base, name.wrapper) for name in names),
        passes=any(name.base not in ("repeat", "relax") and not name.wrapper for name in names),
    )


def method_label(name: str) -> str:
    """Return a method's name as the form shows it.

    >>> method_label("repeat"), method_label("vargrad"), method_label("repeat:kernel_shap")
    ('REPEAT', 'VarGrad', 'REPEAT over Kernel SHAP')
    """
    base, wrapper, _ = parse(name)
    label = method_title(configuration(METHODS[base]))
    return f"{method_label(wrapper)} over {label}" if wrapper else label
