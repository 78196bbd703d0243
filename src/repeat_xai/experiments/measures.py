"""Measures turn an image, its maps or its code into the numbers of a row.

MapScores       every metric of the image's maps; it has a module of its own, `map_scores`
Codes           the image's code, for detection by codes alone
EncoderScores   one metric of the encoder and the method, such as robustness
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, final, runtime_checkable

import torch

from repeat_xai.encoders.calls import metering
from repeat_xai.errors import RepeatError
from repeat_xai.methods.base import Method
from repeat_xai.metrics import METRICS, EncoderMetric, EncoderScore
from repeat_xai.types import Encoder, Explanation, Image, Task

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The numbers of one image, or the reason why there are none."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Values of metrics, by `METRIC.MAP`."""
    code: tuple[float, ...] = ()
    calls: int = 0
    """Number of encoder calls."""
    seconds: float = 0.0
    failure: str | None = None
    """The reason why the image could not be measured; None if it was."""
    explanation: Explanation | None = None
    """The explanation whose maps were scored, so that the maps can be stored."""


class ImageTag(NamedTuple):
    """The tag of a task: the image's number in its dataset, and what is known about the image."""

    number: int
    segmentation: Bool[Tensor, "height width"] | None = None
    """The pixels of its objects, where they are known."""
    measured: Measured | None = None
    """Numbers that are known already, so that nothing needs to be explained."""


@runtime_checkable
class Measure(Protocol):
    """A way to measure images, which decides what numbers a row holds."""

    explains: ClassVar[bool]
    """Whether its numbers depend on the method."""

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[ImageTag, Measured]]:
        """Yield the tag and the numbers of each task, in order."""
        ...


def measure_each(tasks: Iterable[Task], measure: Callable[[Image], Measured]) -> Iterator[tuple[ImageTag, Measured]]:
    """Yield the numbers of tasks that are measured one after the other, with a failure for each image that fails."""
    for task in tasks:
        if isinstance(task.image, Image):
            try:
                yield task.tag, measure(task.image)
            except RepeatError as error:
                yield task.tag, Measured(failure=str(error))
        else:
            yield task.tag, measured_without_image(task.tag, task.image)


def measured_without_image(tag: ImageTag, error: RepeatError | None) -> Measured:
    """Return the numbers of a task without an image: why it failed, or the numbers that are known already."""
    if error is not None:
        return Measured(failure=str(error))
    assert tag.measured is not None
    return tag.measured


@final
@dataclass(frozen=True, kw_only=True)
class Codes:
    """Takes the code of each image as its numbers; no method runs."""

    explains: ClassVar[bool] = False

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[ImageTag, Measured]]:
        del method, seed

        def measure(image: Image) -> Measured:
            with metering() as meter, torch.inference_mode():
                code = encoder(image.pixels[None].to(encoder.device, encoder.dtype))[0].double()
            if not code.isfinite().all():
                reason = f"{encoder.name}: returns NaN or infinite codes; check its weights and precision"
                return Measured(failure=reason)
            return Measured(code=tuple(code.tolist()), calls=1, seconds=meter.seconds)

        return measure_each(tasks, measure)


@final
@dataclass(frozen=True, kw_only=True)
class EncoderScores:
    """Measures the method on the encoder by one metric, image by image."""

    explains: ClassVar[bool] = True

    metric: str
    score: EncoderScore
    """Computes the metric. It is held here, and not looked up by the metric's name, so that its options are part of the
    row's key and that a metric of the user's own runs in other processes, too."""

    @staticmethod
    def of(metric: EncoderMetric) -> EncoderScores:
        """Return the measure of a metric with its default options."""
        return EncoderScores(metric=metric.name, score=metric.score)

    def with_draws(self, draws: int) -> EncoderScores:
        """Return the measure with another number of draws, if the metric has draws."""
        score: Any = self.score
        return replace(self, score=replace(score, draws=draws)) if _has_draws(score) else self

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[ImageTag, Measured]]:
        def measure(image: Image) -> Measured:
            with metering() as meter:
                values = self.score(method, encoder, image, seed=seed)
            scores = {f"{self.metric}.{kind}": value for kind, value in values.items()}
            return Measured(scores=scores, calls=meter.calls, seconds=meter.seconds)

        return measure_each(tasks, measure)


def metrics_with_draws() -> set[str]:
    """Return the names of the metrics whose number of draws can be chosen."""
    return {name for name, metric in METRICS.items() if isinstance(metric, EncoderMetric) and _has_draws(metric.score)}


def _has_draws(score: object) -> bool:
    return is_dataclass(score) and any(field.name == "draws" for field in fields(score))
