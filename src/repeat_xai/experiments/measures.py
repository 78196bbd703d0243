"""Measures turn an explained image, or its code, into the numbers of a row.

MapScores      every metric of its maps, for importance and uncertainty and for weighted and binary votes
Codes          its code, for detection by codes alone
Robustness     how far its map moves when the image is disturbed
Faithfulness   how similar its code stays as the most important pixels are removed, or added
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, final, runtime_checkable

import torch

from repeat_xai.encoders.calls import metering
from repeat_xai.errors import ConfigurationError, RepeatError, at_least
from repeat_xai.methods.base import Method
from repeat_xai.metrics import METRICS, deletion, local_lipschitz
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.metrics.emprt import entropy
from repeat_xai.metrics.shaken import Numbers
from repeat_xai.types import Encoder, Explanation, Image, Task

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The numbers of one image, or the reason why there are none."""

    scores: Mapping[str, float] = field(default_factory=dict)
    code: tuple[float, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    failure: str | None = None
    explanation: Explanation | None = None


class Subject(NamedTuple):
    """The tag of a task: the image's number in its dataset, and what is known of the image."""

    number: int
    segmentation: Bool[Tensor, "height width"] | None = None
    """The pixels of its objects, where they are known."""
    measured: Measured | None = None
    """Numbers that are known already, so that nothing needs to be explained."""


@runtime_checkable
class Measure(Protocol):
    """A way to measure images."""

    explains: ClassVar[bool]
    """Whether its numbers depend on the method."""

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[Subject, Measured]]:
        """Yield the subject and the numbers of each task, in order."""
        ...


def measure_each(tasks: Iterable[Task], measure: Callable[[Image], Measured]) -> Iterator[tuple[Subject, Measured]]:
    """Yield the numbers of tasks that are measured one after the other; an image that fails does so alone."""
    for task in tasks:
        if isinstance(task.image, Image):
            try:
                yield task.tag, measure(task.image)
            except RepeatError as error:
                yield task.tag, Measured(failure=str(error))
        else:
            yield task.tag, _without_image(task.tag, task.image)


def _without_image(subject: Subject, error: RepeatError | None) -> Measured:
    """Return what is known of a subject that has no image to explain."""
    if error is not None:
        return Measured(failure=str(error))
    assert subject.measured is not None
    return subject.measured


@final
@dataclass(frozen=True, kw_only=True)
class MapScores:
    """Every metric of the image's maps."""

    explains: ClassVar[bool] = True

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[Subject, Measured]]:
        for answer in method.answers(encoder, tasks, seed=seed):
            subject, result = answer.task.tag, answer.result
            if isinstance(result, Explanation):
                scores = score_maps(result.maps, subject.segmentation)
                measured = Measured(scores=scores, calls=answer.calls, seconds=answer.seconds, explanation=result)
            else:
                measured = _without_image(subject, result)
            yield subject, measured


def score_maps(stored: Mapping[str, Tensor], segmentation: Bool[Tensor, "height width"] | None) -> dict[str, float]:
    """Return the value of every metric and aggregate on every map, as `METRIC.MAP`.

    `vote_share` and `vote_variance` are importance and uncertainty with binary votes of the same repeats. A value that
    is undefined is NaN, and not left out, so that a row shows which metrics were known when it was made.
    """
    maps = dict(stored)
    if (share := stored.get("vote_share")) is not None:
        maps["vote_variance"] = share * (1 - share)
    names = [*METRICS, "resolved_entropy", *AGGREGATES]
    undefined = {f"{name}.{kind}": math.nan for name in names for kind in ("importance", "uncertainty", *maps)}
    stack = torch.stack(list(maps.values()))
    columns = {name: metric(stack) for name, metric in METRICS.items() if metric.needs == "maps"}
    columns["resolved_entropy"] = entropy(stack)
    columns |= {name: aggregate(stack) for name, aggregate in AGGREGATES.items()}
    for metric in METRICS.values():
        if segmentation is not None and metric.needs == "masks":
            with suppress(ConfigurationError):  # the maps may have fewer pixels than the metric counts
                columns[metric.name] = metric(stack, segmentation.expand_as(stack))
    return undefined | {
        f"{name}.{kind}": value
        for name, column in columns.items()
        for kind, value in zip(maps, column.tolist(), strict=True)
    }


@final
@dataclass(frozen=True, kw_only=True)
class Codes:
    """The image's code."""

    explains: ClassVar[bool] = False

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[Subject, Measured]]:
        del method, seed

        def measure(image: Image) -> Measured:
            with metering() as meter, torch.inference_mode():
                code = encoder(image.pixels[None].to(encoder.device, encoder.dtype))[0].double()
            if not code.isfinite().all():
                why = f"{encoder.name}: returns NaN or infinite codes; check its weights and precision"
                return Measured(failure=why)
            return Measured(code=tuple(code.tolist()), calls=1, seconds=meter.seconds)

        return measure_each(tasks, measure)


@final
@dataclass(frozen=True, kw_only=True)
class Robustness:
    """The local Lipschitz estimate of importance."""

    explains: ClassVar[bool] = True

    draws: int = 200
    numbers: Numbers = "fresh"

    def __post_init__(self) -> None:
        at_least("draws", self.draws, 1)

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[Subject, Measured]]:
        def measure(image: Image) -> Measured:
            with metering() as meter:
                value = local_lipschitz(method, encoder, image, draws=self.draws, numbers=self.numbers, seed=seed)
            return Measured(scores={"local_lipschitz.importance": value}, calls=meter.calls, seconds=meter.seconds)

        return measure_each(tasks, measure)


@final
@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """The area under the curve of how similar the code stays."""

    explains: ClassVar[bool] = True

    way: Literal["deletion", "insertion"] = "deletion"

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[Subject, Measured]]:
        def measure(image: Image) -> Measured:
            with metering() as meter:
                importance = method(encoder, image, seed=seed).importance
                area = deletion(encoder, image, importance, way=self.way).area
            return Measured(scores={f"{self.way}.importance": area}, calls=meter.calls, seconds=meter.seconds)

        return measure_each(tasks, measure)
