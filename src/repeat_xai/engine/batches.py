"""Batches of masked copies go through the encoder one after the other, so memory does not grow with their number.

Nothing in this file waits for the device. Signs that something is wrong with an image are kept on the device as error
flags, and are read together with the image's results.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.encoders.calls import add_calls, metering
from repeat_xai.encoders.codes import checked_codes
from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.masks import Basis, Draws, Grid, sent
from repeat_xai.engine.precision import rounding
from repeat_xai.engine.runtimes import (
    HALVES,
    MaskedBatch,
    forget_stale,
    forward_of,
    limited_by_memory,
    remember_memory_limit,
)
from repeat_xai.engine.steadiness import behaviour_of
from repeat_xai.engine.targets import ITSELF, ResolvedTarget, Target
from repeat_xai.errors import EncoderError, lacks_memory, reason
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from jaxtyping import Float

CHUNKS = {"cpu": 16, "cuda": 512}
"""Masked copies of 224×224 pixels per batch: a GPU needs many to be busy, while a CPU's caches hold only a few."""
MAX_CHUNK = 2048
"""Most masked copies per batch, however small they are."""
COPIES_PER_IMAGE = 64
"""A batch may hold one image for each so many copies."""
Progress = Callable[[Tensor], None]
"""Called with the similarities of some masked copies when they have been measured."""


class Plan(NamedTuple):
    """How the masked copies of an image are drawn, compared and encoded."""

    grid: Grid
    similarity: Kernel
    chunk: int | None
    """Masked copies per batch; None chooses by the device."""
    calls: int
    """Encoder calls for an image, at most."""
    targets: tuple[Target | None, ...] = (None,)
    """What the codes of masked copies are compared with; None is the image itself."""
    codes: bool = False
    """Whether masks are answered with the codes of the masked copies, [masks, dim] in float64, in place of their
    similarities. Before the codes for the first masks of an image comes that of the image itself."""


class Flags(NamedTuple):
    """Signs that something may be wrong with an image, on the device, in float64."""

    grain: Tensor
    """Rounding error of the first masked copy's code; 0 in half precision, where the batch does not change it."""
    difference: Tensor
    """Largest difference between that code and any other; NaN or infinite where a code is."""
    movement: Tensor
    """Σ (1 − cosine of the code and that of a masked copy): how far masking moves the code."""
    total: Float[Tensor, " targets"]
    """Σ s toward each target; NaN or infinite where a similarity is."""
    squares: Float[Tensor, " targets"]
    """Σ s² toward each target."""


@final
class Subject:
    """An image on the device, with its code and its error flags."""

    def __init__(self, pixels: Float[Tensor, "channels height width"], targets: Sequence[ResolvedTarget]) -> None:
        self.pixels, self.targets = pixels, targets
        self.calls = 0
        zero = torch.zeros((), dtype=torch.float64, device=pixels.device)
        self.flags = Flags(zero, zero, zero, zero.expand(len(targets)), zero.expand(len(targets)))
        self._code: Tensor | None = None
        self._first: Tensor | None = None

    def compare(self, similarity: Kernel, codes: Float[Tensor, "rows dim"]) -> Float[Tensor, "masks targets"]:
        """Return the similarity of each code toward each target, in float64.

        The first code ever given is that of the image itself, and has no similarity.
        """
        self.calls += len(codes)
        exact = codes.double()
        if self._code is None:
            self._code, exact = exact[0], exact[1:]
            self.flags = self.flags._replace(difference=(self._code - self._code).amax())  # NaN where the code is
        if not len(exact):
            return exact.new_empty(0, len(self.targets))
        grain, difference, movement, total, squares = self.flags
        if self._first is None:
            self._first = exact[0]
            grain = (0.0 if codes.dtype in HALVES else torch.finfo(codes.dtype).eps) * exact[0].abs().amax()
        columns = [target.similarities(similarity, self._code, exact) for target in self.targets]
        difference = torch.maximum(difference, (exact - self._first).abs().amax())
        own = columns[0] if self.targets[0] is ITSELF and isinstance(similarity, Cosine) else None
        movement = movement + (1 - (Cosine()(self._code, exact) if own is None else own)).sum()
        total = total + torch.stack([values.sum() for values in columns])
        squares = squares + torch.stack([values.square().sum() for values in columns])
        self.flags = Flags(grain, difference, movement, total, squares)
        return torch.stack(columns, 1)

    @property
    def joined_flags(self) -> Float[Tensor, " flags"]:
        """All error flags in one tensor."""
        return torch.cat([flag.reshape(-1) for flag in self.flags])


@final
@dataclass(eq=False)
class Question:
    """Masks under which the similarity of an image is to be measured."""

    subject: Subject
    draws: Draws
    """The masks; the very first one of an image stands for the image without a mask."""
    begun: int = 0
    answers: list[Tensor] = field(default_factory=list)
    """Similarities [masks, targets], or codes [masks, 1, dim]."""
    failure: EncoderError | None = None

    @property
    def left(self) -> int:
        """Number of copies that are not encoded yet."""
        return len(self.draws.grids) - self.begun


class _TooManyError(Exception):
    """Raised when memory does not suffice for this many copies in one batch."""

    def __init__(self, copies: int) -> None:
        self.copies = copies


@final
class Engine:
    """Runs masked copies of images of one shape through an encoder."""

    def __init__(
        self,
        encoder: Encoder,
        shape: torch.Size,
        plan: Plan,
        progress: Progress | None = None,
        targets: Sequence[ResolvedTarget] = (ITSELF,),
    ) -> None:
        forget_stale(encoder)
        self.encoder, self.shape, self.plan, self.progress, self.targets = encoder, shape, plan, progress, targets
        self.device = encoder.device
        _, height, width = shape
        self.basis = Basis.of(plan.grid, height, width, self.device)
        self.behaviour = behaviour_of(encoder, shape)
        with self.behaviour.isolated():
            self.rounding = rounding(encoder, self.basis, plan.similarity, targets, shape)
        default = CHUNKS.get(self.device.type, CHUNKS["cpu"]) * 224**2 // (height * width)
        self.chunk = limited_by_memory(encoder, plan.chunk or min(max(default, 1), MAX_CHUNK), height * width)
        self.sharing = True
        self.runtimes: dict[str, None] = {}
        """Names of the runtimes that were used, in their order."""
        self.preparing = 0.0
        """Seconds spent so far to make the encoder ready."""
        self.code_length: int | None = None
        self._rounded = self.basis.to(self.rounding.dtype)
        self._queue: deque[Question] = deque()

    @property
    def images(self) -> int:
        """Images in a batch, at most."""
        return max(1, self.chunk // COPIES_PER_IMAGE) if self.sharing else 1

    @property
    def waiting(self) -> int:
        """Number of copies that wait to be encoded."""
        return sum(question.left for question in self._queue)

    def subject(self, image: Image) -> Subject:
        """Send an image to the device."""
        return Subject(sent(image.pixels, self.device).to(self.rounding.dtype), self.targets)

    def ask(self, subject: Subject, draws: Draws) -> Question:
        """Queue an image under these masks; the first time, the image itself goes before them."""
        if not subject.calls:
            draws = Draws(*(torch.cat((part[:1], part)) for part in draws))
        self._queue.append(Question(subject, draws))
        return self._queue[-1]

    def launch(self) -> list[Question]:
        """Encode a batch of the copies that wait, and return the questions that are now answered or have failed.

        Where memory does not suffice, nothing is answered and the next batch is half as large. Where one of several
        images may be at fault, nothing is answered either, and from then on each image has batches of its own.
        """
        taken: list[tuple[Question, int]] = []
        room = self.chunk
        for question in islice(self._queue, self.images):
            if room:
                taken.append((question, min(room, question.left)))
                room -= taken[-1][1]
        counts = [count for _, count in taken]
        try:
            codes = self._encode(taken, rows=sum(counts))
        except _TooManyError as error:
            remember_memory_limit(self.encoder, error.copies, self.shape[1] * self.shape[2])
            self.chunk = error.copies // 2
            torch.cuda.empty_cache()
            return []
        except EncoderError as error:
            if len(taken) > 1:
                self.sharing = False
                return []
            taken[0][0].failure = error
        else:
            for (question, count), part in zip(taken, torch.split(codes, counts), strict=True):
                question.begun += count
                similarities = question.subject.compare(self.plan.similarity, part)
                question.answers.append(part.double()[:, None] if self.plan.codes else similarities)
                if self.progress is not None:
                    self.progress(similarities)
        done = [question for question, _ in taken if question.failure or not question.left]
        self._queue = deque(question for question in self._queue if question not in done)
        return done

    def _encode(self, taken: list[tuple[Question, int]], *, rows: int) -> Float[Tensor, "rows dim"]:
        """Return one code for each copy."""
        name, image, copies = self.encoder.name, "×".join(map(str, self.shape)), self.chunk
        try:
            started = time.perf_counter()
            size = (self.images, *self.shape)
            with self.behaviour.isolated():
                forward = forward_of(
                    self.encoder, self._rounded, torch.Size(size), rows=rows, chunk=self.chunk, calls=self.plan.calls
                )
            self.preparing += time.perf_counter() - started
            self.runtimes.setdefault(forward.runtime)
            copies = self.chunk if forward.fixed else rows
            batch = self._batch(taken, fixed=forward.fixed)
            with metering() as meter, self.behaviour.isolated():
                codes = forward.run(batch, self._rounded)
            if not meter.calls:
                add_calls(rows)
        except EncoderError:
            raise
        except Exception as error:  # a module may raise any error
            if not lacks_memory(error):
                raise EncoderError(f"{name}: fails on a batch of {copies}×{image}: {reason(error)}") from error
            if copies == 1:
                raise EncoderError(f"{name}: out of memory on a single image of {image}") from error
            raise _TooManyError(copies) from error
        codes = checked_codes(codes, name, rows=copies, device=self.device)
        self.code_length = self.code_length or codes.shape[1]
        if codes.shape[1] != self.code_length:
            raise EncoderError(f"{name}: returns codes of {self.code_length} values, then of {codes.shape[1]}")
        return codes[:rows].detach().clone()  # the encoder may keep its output and write into it at its next call

    def _batch(self, taken: list[tuple[Question, int]], *, fixed: bool) -> MaskedBatch:
        """Return the copies to be made, filled up with the last image and copy where all batches have one size."""
        images = [question.subject.pixels for question, _ in taken]
        counts = [count for _, count in taken]
        which = np.repeat(np.arange(len(taken)), counts)
        whole = np.concatenate([q.subject.calls + np.arange(count) == 0 for q, count in taken])
        flags = np.stack((which, whole))
        parts = [Draws(*(part[q.begun : q.begun + count] for part in q.draws)) for q, count in taken]
        draws = parts[0] if len(parts) == 1 else Draws(*(torch.cat(every) for every in zip(*parts, strict=True)))
        if fixed:
            missing = self.chunk - sum(counts)
            images += images[-1:] * (self.images - len(images))
            flags = np.pad(flags, ((0, 0), (0, missing)), mode="edge")
            draws = Draws(*(torch.cat((part, part[-1:].repeat(missing, *[1] * (part.ndim - 1)))) for part in draws))
        on_device = sent(torch.from_numpy(flags), self.device)
        draws = draws._replace(grids=draws.grids.to(self.rounding.dtype))
        return MaskedBatch(torch.stack(images), on_device[0], on_device[1].bool(), draws)
