"""What is measured of an image: numbers to be put in a row.

Maps           every metric of its maps, of importance and uncertainty, weighted votes and binary ones
Codes          its code, for baselines that look at codes alone
Robustness     how far its map moves when it is disturbed
Faithfulness   how its code holds out as the most important pixels go, or come
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Protocol, final, runtime_checkable

import torch

from repeat_xai.encoders.calls import metering
from repeat_xai.errors import ConfigurationError, RepeatError, at_least
from repeat_xai.methods.method_names import Method
from repeat_xai.methods.relax import Relax
from repeat_xai.metrics import METRICS, deletion, local_lipschitz
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.metrics.emprt import entropy
from repeat_xai.metrics.shaken import Numbers
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor


class Subject(NamedTuple):
    """An image, and where its objects are, if that is known."""

    image: Image
    mask: Bool[Tensor, "height width"] | None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What came of one image."""

    scores: Mapping[str, float] = field(default_factory=dict)
    code: tuple[float, ...] = ()
    calls: int = 0
    seconds: float = 0.0
    failure: str | None = None
    explanation: Explanation | None = None


@runtime_checkable
class Measure(Protocol):
    """Images to what is found of each, in order."""

    explains: ClassVar[bool]
    """Whether it depends on the method."""

    def __call__(
        self, encoder: Encoder, method: Method, subjects: Iterator[Subject], *, seed: int
    ) -> Iterator[Found]: ...


@final
@dataclass(frozen=True, kw_only=True)
class Maps:
    """Every metric of the image's maps."""

    explains: ClassVar[bool] = True

    def __call__(self, encoder: Encoder, method: Method, subjects: Iterator[Subject], *, seed: int) -> Iterator[Found]:
        begun: deque[Subject] = deque()

        def images() -> Iterator[Image]:
            for subject in subjects:
                begun.append(subject)
                yield subject.image

        for answer in method.answers(encoder, images(), seed=seed):
            subject, result = begun.popleft(), answer.result
            if isinstance(result, RepeatError):
                yield Found(failure=str(result))
            else:
                scores = scored(maps_of(result), subject.mask)
                yield Found(scores=scores, calls=answer.calls, seconds=answer.seconds, explanation=result)


def maps_of(explanation: Explanation) -> dict[str, Tensor]:
    """Return the maps of an explanation by their names, as they are stored."""
    maps = {"importance": explanation.importance, "uncertainty": explanation.uncertainty}
    return maps if explanation.vote_share is None else maps | {"vote_share": explanation.vote_share}


def scored(stored: Mapping[str, Tensor], mask: Bool[Tensor, "height width"] | None) -> dict[str, float]:
    """Return the value of every metric and aggregate on every map, as `METRIC.MAP`.

    `vote_share` and `vote_variance` are importance and uncertainty with binary votes, of the same repeats. A value that
    is undefined is NaN, and not left out, so that a row shows which metrics were known when it was made.
    """
    maps = dict(stored)
    if (share := stored.get("vote_share")) is not None:
        maps["vote_variance"] = share * (1 - share)
    names = [*METRICS, "resolved_entropy", *AGGREGATES]
    undefined = {f"{name}.{of}": math.nan for name in names for of in maps}
    maps = {of: values for of, values in maps.items() if not values.isnan().any()}
    stack = torch.stack(list(maps.values()))
    columns = {name: metric(stack) for name, metric in METRICS.items() if metric.needs == "maps"}
    columns["resolved_entropy"] = entropy(stack)
    columns |= {name: aggregate(stack) for name, aggregate in AGGREGATES.items()}
    for metric in METRICS.values():
        if mask is not None and metric.needs == "masks":
            with suppress(ConfigurationError):  # of maps with fewer pixels than it counts
                columns[metric.name] = metric(stack, mask.expand_as(stack))
    return undefined | {
        f"{name}.{of}": value
        for name, column in columns.items()
        for of, value in zip(maps, column.tolist(), strict=True)
    }


@final
@dataclass(frozen=True, kw_only=True)
class Codes:
    """The image's code."""

    explains: ClassVar[bool] = False

    def __call__(
        self,
        encoder: Encoder,
        method: Method,
        subjects: Iterator[Subject],
        *,
        seed: int,
    ) -> Iterator[Found]:
        for subject in subjects:
            try:
                with metering() as meter, torch.inference_mode():
                    code = encoder(subject.image.pixels[None].to(encoder.device, encoder.dtype))[0].double()
            except RepeatError as error:
                yield Found(failure=str(error))
                continue
            if code.isfinite().all():
                yield Found(code=tuple(code.tolist()), calls=1, seconds=meter.seconds)
            else:
                yield Found(failure=f"{encoder.name}: returns NaN or infinite codes; check its weights and precision")


@final
@dataclass(frozen=True, kw_only=True)
class Robustness:
    """The local Lipschitz estimate of importance."""

    explains: ClassVar[bool] = True

    draws: int = 200
    numbers: Numbers = "fresh"

    def __post_init__(self) -> None:
        at_least("draws", self.draws, 1)

    def __call__(self, encoder: Encoder, method: Method, subjects: Iterator[Subject], *, seed: int) -> Iterator[Found]:
        explain = method.explain if isinstance(method, Relax) else method
        for image, _ in subjects:
            with metering() as meter:
                try:
                    value = local_lipschitz(explain, encoder, image, draws=self.draws, numbers=self.numbers, seed=seed)
                except RepeatError as error:
                    yield Found(failure=str(error))
                    continue
            yield Found(scores={"local_lipschitz.importance": value}, calls=meter.calls, seconds=meter.seconds)


@final
@dataclass(frozen=True, kw_only=True)
class Faithfulness:
    """Area under the curve of how alike the code stays."""

    explains: ClassVar[bool] = True

    way: Literal["deletion", "insertion"] = "deletion"

    def __call__(self, encoder: Encoder, method: Method, subjects: Iterator[Subject], *, seed: int) -> Iterator[Found]:
        for image, _ in subjects:
            answer = next(method.answers(encoder, iter((image,)), seed=seed))
            if isinstance(answer.result, RepeatError):
                yield Found(failure=str(answer.result))
                continue
            try:
                with metering() as meter:
                    area = deletion(encoder, image, answer.result.importance, way=self.way).area
            except RepeatError as error:
                yield Found(failure=str(error))
                continue
            yield Found(
                scores={f"{self.way}.importance": float(area)},
                calls=answer.calls + meter.calls,
                seconds=answer.seconds + meter.seconds,
            )
