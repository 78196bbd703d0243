"""Estimates that ask how alike images stay under masks, answered for many images at once.

An estimate is a generator: it yields masks and is sent similarities, on the encoder's device; or yields a tensor and is
sent it on the host, and ends so, lest it leave unread what may be wrong with its image. While one image waits to be
read, others keep the device busy.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar, final

import torch
from torch import Tensor

from repeat_xai.engine.batches import Engine, Plan, Question, Subject
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.precision import LIMIT
from repeat_xai.engine.runtimes import spent
from repeat_xai.errors import EncoderError, RepeatError, lacks_memory
from repeat_xai.types import Encoder, Image, expect, expect_encoder

S = TypeVar("S")
T = TypeVar("T")
Estimate = Generator[Draws | Tensor, Tensor, T]
SAME = 8
"""Codes no further apart than so many rounding errors are the same code."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Answer(Generic[T]):
    """What came of one image, and what it cost."""

    image: Image
    result: T | RepeatError
    calls: int = 0
    seconds: float = 0.0
    """Since the answer before, without the time it took to make the encoder ready."""
    ran: Mapping[str, Any] = field(default_factory=dict)
    """How the encoder was run."""

    def to(self, made: Callable[[T], S]) -> Answer[S]:
        """With something made of the result, if there is one."""
        result = self.result if isinstance(self.result, RepeatError) else made(self.result)
        return Answer(image=self.image, result=result, calls=self.calls, seconds=self.seconds, ran=self.ran)


def stream(
    encoder: Encoder, images: Iterable[Image], estimate: Callable[[Basis, Image], Estimate[T]], plan: Plan
) -> Iterator[Answer[T]]:
    """Every image by its estimate, in order; one that fails does so alone."""

    def shape(image: Image) -> torch.Size:
        if not isinstance(image, Image):
            expect(encoder, image)
        return image.pixels.shape

    expect_encoder(encoder)
    for size, group in groupby(images, key=shape):
        yield from _line(encoder, size, estimate, plan, group)


def _line(
    encoder: Encoder,
    shape: torch.Size,
    estimate: Callable[[Basis, Image], Estimate[T]],
    plan: Plan,
    images: Iterator[Image],
) -> Iterator[Answer[T]]:
    try:
        engine = Engine(encoder, shape, plan)
    except EncoderError as error:
        failure = error  # the name `error` ends with this block, before the first answer is asked for
        return (Answer(image=image, result=failure) for image in images)
    return _Line(engine, estimate).answers(images)


def only(answers: Iterator[Answer[T]]) -> T:
    """The one result, or the reason why there is none."""
    (found,) = answers
    if isinstance(found.result, RepeatError):
        raise found.result
    return found.result


@final
@dataclass(eq=False)
class _Job(Generic[T]):
    """An image under way."""

    image: Image
    started: float
    subject: Subject
    estimate: Estimate[T]
    spread: float = math.inf
    """Of its similarities."""
    result: T | RepeatError | None = None


class _Reading(NamedTuple):
    """A tensor on its way to the host, with what is noted of its image."""

    job: _Job[Any]
    value: Tensor
    notes: Tensor
    arrived: torch.cuda.Event | None


@final
class _Line(Generic[T]):
    """Images of one shape, several of them under way where the device would else wait."""

    def __init__(self, engine: Engine, estimate: Callable[[Basis, Image], Estimate[T]]) -> None:
        self.engine, self.estimate = engine, estimate
        self.on_gpu = engine.device.type == "cuda"
        self.asked: dict[Question, _Job[T]] = {}
        self.readings: deque[_Reading] = deque()

    @property
    def width(self) -> int:
        """Images under way: on a GPU enough to fill a batch while as many are read."""
        return 2 * self.engine.images + 2 if self.on_gpu else 1

    def answers(self, images: Iterator[Image]) -> Iterator[Answer[T]]:
        """In the order of the images."""
        jobs: deque[_Job[T]] = deque()
        before, prepared = time.perf_counter(), self.engine.preparing
        while True:
            while len(jobs) < self.width and (image := next(images, None)) is not None:
                jobs.append(self._begin(image))
            if not jobs:
                return
            while jobs[0].result is None:
                self._work()
            job, now = jobs.popleft(), time.perf_counter()
            seconds = now - max(before, job.started) - (self.engine.preparing - prepared)
            spent(self.engine.encoder, seconds)
            yield self._answer(job, seconds)
            before, prepared = time.perf_counter(), self.engine.preparing

    def _begin(self, image: Image) -> _Job[T]:
        started = time.perf_counter()
        job = _Job(image, started, self.engine.subject(image), self.estimate(self.engine.basis, image))
        if not image.pixels.any():
            blank = "blank, every pixel is the mean colour, so masking changes nothing"
            job.result = EncoderError(f"{image.photo.name}: {blank}")
        else:
            self._go_on(job, None)
        return job

    def _work(self) -> None:
        """Encode a batch, unless it would not be full and something can be read that may fill it."""
        if self.readings and self.engine.waiting < self.engine.chunk:
            reading = self.readings.popleft()
            if reading.arrived is not None:
                reading.arrived.synchronize()
            self._go_on(reading.job, reading.value, reading.notes)
            return
        for question in self.engine.launch():
            job = self.asked.pop(question)
            if question.failure is not None:
                job.result = question.failure
            else:
                self._go_on(job, torch.cat(question.answers), None if self.on_gpu else torch.stack(job.subject.notes))

    def _go_on(self, job: _Job[T], value: Tensor | None, notes: Tensor | None = None) -> None:
        """Hand an estimate what it asked for, and take its next question."""
        try:
            if notes is not None:
                self._check(job, *notes.tolist())
            asked = next(job.estimate) if value is None else job.estimate.send(value)
        except StopIteration as stop:
            job.result = stop.value
        except EncoderError as error:
            job.result = error
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            job.result = EncoderError(f"{job.image.photo.name}: out of memory beside the encoder; use smaller images")
        else:
            if isinstance(asked, Draws):
                self.asked[self.engine.ask(job.subject, asked)] = job
            else:
                self.readings.append(self._read(job, asked))

    def _read(self, job: _Job[T], value: Tensor) -> _Reading:
        notes = torch.stack(job.subject.notes).to("cpu", non_blocking=True)
        here = value.to("cpu", non_blocking=True)
        arrived = torch.cuda.current_stream(value.device).record_event() if self.on_gpu else None
        return _Reading(job, here, notes, arrived)

    def _check(self, job: _Job[T], grain: float, apart: float, total: float, squares: float) -> None:
        """Refuse to explain from codes that say nothing."""
        name, count = self.engine.encoder.name, job.subject.calls - 1
        if not math.isfinite(apart):
            raise EncoderError(f"{name}: returns NaN or infinite codes; check its weights and precision")
        if not math.isfinite(total):
            raise EncoderError("the similarity gives NaN or infinite numbers")
        if count > 1 and apart <= SAME * grain:
            raise EncoderError(
                f"{job.image.photo.name}: every masked copy has the same code; {name} ignores its input, "
                "or the masks keep too little of it"
            )
        mean = total / count
        job.spread = max(0.0, squares / count - mean * mean) ** 0.5

    def _answer(self, job: _Job[T], seconds: float) -> Answer[T]:
        assert job.result is not None
        precision = str(self.engine.rounding.dtype).removeprefix("torch.")
        if self.engine.rounding.error > LIMIT * job.spread:
            name = job.image.photo.name
            warnings.warn(f"{name}: {precision} is too coarse, rounding decides votes; use float32", stacklevel=2)
        ran = {
            "runtime": " and ".join(self.engine.runtimes),
            "precision": precision,
            "prepared_seconds": round(self.engine.preparing, 3),
        }
        return Answer(image=job.image, result=job.result, calls=job.subject.calls, seconds=seconds, ran=ran)
