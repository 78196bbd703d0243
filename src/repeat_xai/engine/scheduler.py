"""The scheduler measures how similar images stay under masks, for many images at once.

An estimate is a generator that is run for one image and one target. It yields masks and is sent their similarities,
which stay on the encoder's device; or it yields a tensor and is sent it on the host. Its last yield must be a tensor,
so that error flags are read with it. While one image waits for its tensor, others keep the device busy.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar, final

import torch
from torch import Tensor

from repeat_xai.engine.batches import Engine, Plan, Progress, Question, Subject
from repeat_xai.engine.lockstep import Estimate, in_lockstep
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.precision import MAX_ROUNDING
from repeat_xai.engine.runtimes import add_spent_time
from repeat_xai.engine.targets import ResolvedTarget, resolve
from repeat_xai.errors import EncoderError, RepeatError, lacks_memory
from repeat_xai.types import Answer, Encoder, Image, Task, expect, expect_encoder

__all__ = ["Estimate", "Progress", "replay", "run_estimates", "run_target_estimates"]

T = TypeVar("T")
SAME_CODE = 8
"""Codes that differ by no more than this many rounding errors count as the same code."""


def run_estimates(
    encoder: Encoder,
    tasks: Iterable[Task],
    estimate: Callable[[Basis, Image], Estimate[T]],
    plan: Plan,
    progress: Progress | None = None,
) -> Iterator[Answer[T]]:
    """Yield an answer for each task, in order; an image that cannot be explained is answered with its error.

    `plan` has one target. `progress` is called with the similarities of masked copies, in the order of their masks, as
    they are measured.
    """

    def first_column(similarity: Tensor) -> None:
        assert progress is not None
        progress(similarity[:, 0])

    for answer in run_target_estimates(
        encoder, tasks, lambda basis, image: [estimate(basis, image)], plan, first_column if progress else None
    ):
        yield answer.with_result(lambda _, results: results[0])


def run_target_estimates(
    encoder: Encoder,
    tasks: Iterable[Task],
    estimates: Callable[[Basis, Image], Sequence[Estimate[T]]],
    plan: Plan,
    progress: Progress | None = None,
) -> Iterator[Answer[list[T]]]:
    """Yield for each task the results of one estimate for each target of the plan, all from the same masked copies.

    `progress` is called with similarities [masks, targets].
    """
    shape: torch.Size | None = None

    def shape_of(task: Task) -> torch.Size | None:
        """Return the shape of the task's image; a task without one goes along with the images before it."""
        nonlocal shape
        if isinstance(task.image, Image):
            shape = task.image.pixels.shape
        elif task.image is not None and not isinstance(task.image, RepeatError):
            expect(encoder, task.image)
        return shape

    def estimate(basis: Basis, image: Image) -> Estimate[list[T]]:
        return in_lockstep(estimates(basis, image))

    expect_encoder(encoder)
    targets = [resolve(encoder, target, plan.similarity) for target in plan.targets]
    for size, group in groupby(tasks, key=shape_of):
        if size is None:
            yield from (_without_image(task) for task in group)
        else:
            yield from _same_shape(encoder, size, estimate, plan, progress, targets, group)


def replay(estimate: Estimate[T], similarity: Tensor) -> T:
    """Return the result of an estimate whose similarities are already known, in the order of its masks."""
    used = 0
    request = next(estimate)
    while True:
        answer = request
        if isinstance(request, Draws):
            answer = similarity[used : used + len(request.grids)]
            used += len(request.grids)
        assert isinstance(answer, Tensor)
        try:
            request = estimate.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result


def _same_shape(
    encoder: Encoder,
    shape: torch.Size,
    estimate: Callable[[Basis, Image], Estimate[T]],
    plan: Plan,
    progress: Progress | None,
    targets: Sequence[ResolvedTarget],
    tasks: Iterator[Task],
) -> Iterator[Answer[T]]:
    """Answer tasks whose images have one shape; where the encoder cannot be used, all of them with that error."""
    try:
        engine = Engine(encoder, shape, plan, progress, targets)
    except EncoderError as error:
        failure = error  # `error` is deleted at the end of this block, before the first answer is requested
        return (
            Answer(task=task, result=failure) if isinstance(task.image, Image) else _without_image(task)
            for task in tasks
        )
    return _Pipeline(engine, estimate).answers(tasks)


def _without_image(task: Task) -> Answer[Any]:
    """Answer a task that holds an error, or nothing, in place of an image."""
    assert not isinstance(task.image, Image)
    return Answer(task=task, result=task.image)


@final
@dataclass(eq=False)
class _Job(Generic[T]):
    """An image whose explanation has begun and is not finished."""

    task: Task
    started: float
    subject: Subject
    estimate: Estimate[T]
    deviations: Sequence[float] = ()
    """Standard deviation of its similarities toward each target."""
    movement: float = math.nan
    """Mean of 1 − cosine between its code and those of its masked copies."""
    result: T | RepeatError | None = None

    @property
    def name(self) -> str:
        """The name of the photo."""
        assert isinstance(self.task.image, Image)
        return self.task.image.photo.name


class _Reading(NamedTuple):
    """A tensor on its way to the host, with the error flags of its image."""

    job: _Job[Any]
    value: Tensor
    flags: Tensor
    arrived: torch.cuda.Event | None


@final
class _Pipeline(Generic[T]):
    """Runs the estimates of images of one shape, several at once where the device would otherwise wait."""

    def __init__(self, engine: Engine, estimate: Callable[[Basis, Image], Estimate[T]]) -> None:
        self.engine, self.estimate = engine, estimate
        self.on_gpu = engine.device.type == "cuda"
        self.waiting: dict[Question, _Job[T]] = {}
        self.readings: deque[_Reading] = deque()

    @property
    def width(self) -> int:
        """Images under way at once: on a GPU enough to fill a batch while as many are read."""
        return 2 * self.engine.images + 2 if self.on_gpu else 1

    def answers(self, tasks: Iterator[Task]) -> Iterator[Answer[T]]:
        """Yield the answers in the order of the tasks."""
        jobs: deque[_Job[T] | Task] = deque()
        previous, prepared = time.perf_counter(), self.engine.preparing
        while True:
            while len(jobs) < self.width and (task := next(tasks, None)) is not None:
                jobs.append(self._begin(task))
            if not jobs:
                return
            job = jobs[0]
            if isinstance(job, Task):
                jobs.popleft()
                yield _without_image(job)
                continue
            while job.result is None:
                self._work()
            jobs.popleft()
            now = time.perf_counter()
            seconds = now - max(previous, job.started) - (self.engine.preparing - prepared)
            add_spent_time(self.engine.encoder, seconds)
            yield self._answer(job, seconds)
            previous, prepared = time.perf_counter(), self.engine.preparing

    def _begin(self, task: Task) -> _Job[T] | Task:
        """Start the estimate of an image; return a task without an image as it is."""
        if not isinstance(task.image, Image):
            return task
        started, image = time.perf_counter(), task.image
        job = _Job(task, started, self.engine.subject(image), self.estimate(self.engine.basis, image))
        if not image.pixels.any():
            blank = "blank, every pixel is the mean colour, so masking changes nothing"
            job.result = EncoderError(f"{job.name}: {blank}")
        else:
            self._go_on(job, None)
        return job

    def _work(self) -> None:
        """Encode a batch, unless it would not be full and a tensor can be read whose estimate may fill it."""
        if self.readings and self.engine.waiting < self.engine.chunk:
            reading = self.readings.popleft()
            if reading.arrived is not None:
                reading.arrived.synchronize()
            self._go_on(reading.job, reading.value, reading.flags)
            return
        for question in self.engine.launch():
            job = self.waiting.pop(question)
            if question.failure is not None:
                job.result = question.failure
            else:
                flags = None if self.on_gpu else job.subject.joined_flags
                self._go_on(job, torch.cat(question.answers), flags)

    def _go_on(self, job: _Job[T], value: Tensor | None, flags: Tensor | None = None) -> None:
        """Send an estimate what it asked for, and take its next question or its result."""
        try:
            if flags is not None:
                self._check(job, *flags.tolist())
            request = next(job.estimate) if value is None else job.estimate.send(value)
        except StopIteration as stop:
            job.result = stop.value
        except EncoderError as error:
            job.result = error
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            job.result = EncoderError(f"{job.name}: out of memory beside the encoder; use smaller images")
        else:
            if isinstance(request, Draws):
                self.waiting[self.engine.ask(job.subject, request)] = job
            else:
                self.readings.append(self._read(job, request))

    def _read(self, job: _Job[T], value: Tensor) -> _Reading:
        """Begin to copy a tensor to the host, without waiting for it."""
        flags = job.subject.joined_flags.to("cpu", non_blocking=True)
        on_host = value.to("cpu", non_blocking=True)
        arrived = torch.cuda.current_stream(value.device).record_event() if self.on_gpu else None
        return _Reading(job, on_host, flags, arrived)

    def _check(self, job: _Job[T], grain: float, difference: float, movement: float, *sums: float) -> None:
        """Refuse codes that are not finite or do not depend on the image."""
        name, count = self.engine.encoder.name, job.subject.calls - 1
        if not math.isfinite(difference):
            raise EncoderError(f"{name}: returns NaN or infinite codes; check its weights and precision")
        totals, squares = sums[: len(sums) // 2], sums[len(sums) // 2 :]
        if not all(math.isfinite(total) for total in totals):
            raise EncoderError("the similarity gives NaN or infinite numbers")
        if count > 1 and difference <= SAME_CODE * grain:
            raise EncoderError(
                f"{job.name}: every masked copy has the same code; {name} ignores its input, "
                "or the masks keep too little of it"
            )
        job.deviations = [
            max(0.0, square / count - (total / count) * (total / count)) ** 0.5
            for total, square in zip(totals, squares, strict=True)
        ]
        job.movement = movement / count

    def _answer(self, job: _Job[T], seconds: float) -> Answer[T]:
        """Return the answer for a finished image; warn where half precision was too coarse for it."""
        assert job.result is not None
        precision = str(self.engine.rounding.dtype).removeprefix("torch.")
        errors = zip(self.engine.rounding.errors, job.deviations, strict=False)  # a job that failed has no deviations
        if any(error > MAX_ROUNDING * deviation for error, deviation in errors):
            warnings.warn(
                f"{job.name}: rounding in {precision} may change votes; give precision='float32'", stacklevel=2
            )
        ran = {
            "runtime": " and ".join(self.engine.runtimes),
            "precision": precision,
            "prepared_seconds": round(self.engine.preparing, 3),
            "code_movement": job.movement,
        }
        return Answer(task=job.task, result=job.result, calls=job.subject.calls, seconds=seconds, ran=ran)
