"""One image is explained toward several targets, from one set of masked copies where the method is over RELAX.

The codes of masked copies do not depend on the target, so T targets cost the encoder calls of the one that needs most
masks. Each explanation is the one that its target would get alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import tee
from typing import Any

from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Estimate, Progress, run_target_estimates
from repeat_xai.engine.targets import Target, expect_target
from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.methods.base import Answering, name_of
from repeat_xai.methods.fast_estimator import SharedSums
from repeat_xai.methods.provenance import MethodMaps, explanation_of
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.spread import Spread
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task


def with_target(method: Any, target: Target | None) -> Any:
    """Return the method with this target, which goes to the base of a method that has one; None is the image itself."""
    if isinstance(method, Repeat | Spread):
        return replace(method, base=with_target(method.base, target))
    if not is_dataclass(method) or isinstance(method, type) or "target" not in {f.name for f in fields(method)}:
        raise ConfigurationError(f"{name_of(method)} has no target; use Repeat, Relax or a label-free method")
    own = getattr(method, "target", None)
    if own is not None and own is not target:
        raise ConfigurationError(f"{name_of(method)} has a target already; give all targets in one place")
    return replace(method, target=target)


def answers_for_targets(
    method: Answering,
    encoder: Encoder,
    tasks: Iterable[Task],
    targets: Sequence[Target | None],
    *,
    seed: int,
    progress: Progress | None = None,
) -> Iterator[Answer[list[Explanation]]]:
    """Yield for each task one explanation for each target, in their order; None stands for the image itself.

    An image that cannot be explained is answered with its error. `progress` is called with the similarities
    [masks, targets] of masked copies, by methods over RELAX.
    """
    if not isinstance(targets, Sequence) or isinstance(targets, str) or not targets:
        raise ConfigurationError("targets must be a list of at least one target")
    for target in targets:
        expect_target(target)
    methods = [with_target(method, target) for target in targets]
    if isinstance(method, Relax) or (isinstance(method, Repeat) and isinstance(method.base, Relax)):
        return _shared(methods, encoder, tasks, seed=seed, progress=progress)
    return _one_by_one(methods, encoder, tasks, seed=seed)


def _shared(
    methods: Sequence[Relax | Repeat],
    encoder: Encoder,
    tasks: Iterable[Task],
    *,
    seed: int,
    progress: Progress | None,
) -> Iterator[Answer[list[Explanation]]]:
    """Yield the explanations of methods over RELAX that differ in their targets, from one set of masked copies."""

    def estimates(basis: Basis, image: Image) -> list[Estimate[MethodMaps]]:
        shared = SharedSums(keep=True)
        return [
            method.estimate(basis, image, seed=seed, shared=shared)
            if isinstance(method, Repeat)
            else method.estimate(basis, image, seed=seed)
            for method in methods
        ]

    plans = [method.plan for method in methods]
    plan = plans[0]._replace(targets=tuple(plan.targets[0] for plan in plans))
    record = {"encoder_calls_shared_by": f"{len(methods)} targets"}
    for answer in run_target_estimates(encoder, tasks, estimates, plan, progress):

        def explained(
            image: Image, results: list[MethodMaps], answer: Answer[list[MethodMaps]] = answer
        ) -> list[Explanation]:
            return [
                explanation_of(image, maps, answer, method, encoder, seed=seed, record=record)
                for method, maps in zip(methods, results, strict=True)
            ]

        yield answer.with_result(explained)


def _one_by_one(
    methods: Sequence[Answering], encoder: Encoder, tasks: Iterable[Task], *, seed: int
) -> Iterator[Answer[list[Explanation]]]:
    """Yield the explanations of methods that share nothing: each makes its own encoder calls."""
    streams = [
        method.answers(encoder, own, seed=seed) for method, own in zip(methods, tee(tasks, len(methods)), strict=True)
    ]
    for answers in zip(*streams, strict=True):
        failures = [answer.result for answer in answers if not isinstance(answer.result, Explanation)]
        explanations = [answer.result for answer in answers if isinstance(answer.result, Explanation)]
        result: list[Explanation] | RepeatError | None = failures[0] if failures else explanations
        calls, seconds = sum(answer.calls for answer in answers), sum(answer.seconds for answer in answers)
        yield Answer(task=answers[0].task, result=result, calls=calls, seconds=seconds)
