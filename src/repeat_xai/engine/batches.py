"""Masked copies of images through the encoder, a batch at a time: memory does not grow with their number.

Nothing here waits for the device. What may be wrong with an image is noted there, and read with its results.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.encoders.calls import count_calls, metering
from repeat_xai.encoders.codes import checked_codes
from repeat_xai.engine.kernels import Kernel
from repeat_xai.engine.masks import Basis, Draws, Grid, sent
from repeat_xai.engine.precision import rounding
from repeat_xai.engine.runtimes import HALVES, Batch, at_most, forward_of, renew, too_many
from repeat_xai.engine.steadiness import conduct_of
from repeat_xai.errors import ConfigurationError, EncoderError, lacks_memory, reason
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from jaxtyping import Float

CHUNKS = {"cpu": 16, "cuda": 512}
"""Masked copies of 224×224 pixels through the encoder at once: more fill a GPU, but only crowd a CPU's caches."""
MOST = 2048
SHARE = 64
"""A batch may hold an image for every so many copies."""


class Plan(NamedTuple):
    """How an estimate means to question an encoder."""

    grid: Grid
    similarity: Kernel
    chunk: int | None
    """Masked copies at once, if not as suits the device."""
    calls: int
    """An image, at most."""


class Notes(NamedTuple):
    """What may be wrong with an image, on the device, in float64."""

    grain: Tensor
    """Rounding error of the first masked copy's code; none in half precision, where batches do not change it."""
    apart: Tensor
    """Largest difference from it of any other's; NaN or infinite where a code is, the image's own among them."""
    total: Tensor
    """Σ s; NaN or infinite where a similarity is."""
    squares: Tensor
    """Σ s²."""


@final
class Subject:
    """An image on the device, its code, and what may be wrong with it."""

    def __init__(self, pixels: Float[Tensor, "channels height width"]) -> None:
        self.pixels = pixels
        self.calls = 0
        self.notes = Notes(*torch.zeros(len(Notes._fields), dtype=torch.float64, device=pixels.device))
        self._code: Tensor | None = None
        self._first: Tensor | None = None

    def compare(self, similarity: Kernel, codes: Float[Tensor, "rows dim"]) -> Float[Tensor, " masks"]:
        """How alike the image stays, in float64; the first code ever given is the image's own."""
        self.calls += len(codes)
        exact = codes.double()
        if self._code is None:
            self._code, exact = exact[0], exact[1:]
            self.notes = self.notes._replace(apart=(self._code - self._code).amax())
        if not len(exact):
            return exact[:, 0]
        grain, apart, total, squares = self.notes
        if self._first is None:
            self._first = exact[0]
            grain = (0.0 if codes.dtype in HALVES else torch.finfo(codes.dtype).eps) * exact[0].abs().amax()
        found = _measured(similarity, self._code, exact)
        apart = torch.maximum(apart, (exact - self._first).abs().amax())
        self.notes = Notes(grain, apart, total + found.sum(), squares + found.square().sum())
        return found


@final
@dataclass(eq=False)
class Question:
    """How alike does an image stay under these masks?"""

    subject: Subject
    draws: Draws
    """The first mask of all stands for none."""
    begun: int = 0
    answers: list[Tensor] = field(default_factory=list)
    failure: EncoderError | None = None

    @property
    def left(self) -> int:
        """Copies yet to be encoded."""
        return len(self.draws.grids) - self.begun


class _TooManyError(Exception):
    """There is too little memory for so many copies at once."""

    def __init__(self, copies: int) -> None:
        self.copies = copies


@final
class Engine:
    """An encoder at work on images of one shape."""

    def __init__(self, encoder: Encoder, shape: torch.Size, plan: Plan) -> None:
        renew(encoder)
        self.encoder, self.shape, self.plan = encoder, shape, plan
        self.device = encoder.device
        _, height, width = shape
        self.basis = Basis.of(plan.grid, height, width, self.device)
        self.conduct = conduct_of(encoder, shape)
        with self.conduct.apart():
            self.rounding = rounding(encoder, self.basis, plan.similarity, shape)
        usual = CHUNKS.get(self.device.type, CHUNKS["cpu"]) * 224**2 // (height * width)
        self.chunk = at_most(encoder, plan.chunk or min(max(usual, 1), MOST), height * width)
        self.sharing = True
        self.runtimes: dict[str, None] = {}
        """That were used, in their order."""
        self.preparing = 0.0
        """Seconds spent so far on making the encoder ready."""
        self.width: int | None = None
        """Values of a code."""
        self._rounded = self.basis.to(self.rounding.dtype)
        self._queue: deque[Question] = deque()

    @property
    def images(self) -> int:
        """In a batch, at most."""
        return max(1, self.chunk // SHARE) if self.sharing else 1

    @property
    def waiting(self) -> int:
        """Copies to be encoded."""
        return sum(question.left for question in self._queue)

    def subject(self, image: Image) -> Subject:
        return Subject(sent(image.pixels, self.device).to(self.rounding.dtype))

    def ask(self, subject: Subject, draws: Draws) -> Question:
        """Queue an image under these masks; the first time, the image itself before them."""
        if not subject.calls:
            draws = Draws(*(torch.cat((part[:1], part)) for part in draws))
        self._queue.append(Question(subject, draws))
        return self._queue[-1]

    def launch(self) -> list[Question]:
        """Encode a batch of the copies that wait: the questions that are then answered, or have failed.

        Where memory does not suffice, none: the next batch is half as large. Where an image of several may be at fault,
        none either: from then on each has batches of its own.
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
            too_many(self.encoder, error.copies, self.shape[1] * self.shape[2])
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
                question.answers.append(question.subject.compare(self.plan.similarity, part))
        done = [question for question, _ in taken if question.failure or not question.left]
        self._queue = deque(question for question in self._queue if question not in done)
        return done

    def _encode(self, taken: list[tuple[Question, int]], *, rows: int) -> Float[Tensor, "rows dim"]:
        """One code a copy."""
        name, image, copies = self.encoder.name, "×".join(map(str, self.shape)), self.chunk
        try:
            started = time.perf_counter()
            size = (self.images, *self.shape)
            with self.conduct.apart():
                forward = forward_of(
                    self.encoder, self._rounded, torch.Size(size), rows=rows, chunk=self.chunk, calls=self.plan.calls
                )
            self.preparing += time.perf_counter() - started
            self.runtimes.setdefault(forward.runtime)
            copies = self.chunk if forward.fixed else rows
            batch = self._batch(taken, fixed=forward.fixed)
            with metering() as meter, self.conduct.apart():
                codes = forward.run(batch, self._rounded)
            if not meter.calls:
                count_calls(rows)
        except EncoderError:
            raise
        except Exception as error:  # any module may fail in any way
            if not lacks_memory(error):
                raise EncoderError(f"{name}: fails on a batch of {copies}×{image}: {reason(error)}") from error
            if copies == 1:
                raise EncoderError(f"{name}: out of memory on a single image of {image}") from error
            raise _TooManyError(copies) from error
        codes = checked_codes(codes, name, rows=copies, device=self.device)
        self.width = self.width or codes.shape[1]
        if codes.shape[1] != self.width:
            raise EncoderError(f"{name}: returns codes of {self.width} values, then of {codes.shape[1]}")
        return codes[:rows].detach().clone()  # it may keep what it returns, and write into it at its next call

    def _batch(self, taken: list[tuple[Question, int]], *, fixed: bool) -> Batch:
        """Copies to be made; filled up with the last image and the last copy where batches have one size."""
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
        there = sent(torch.from_numpy(flags), self.device)
        draws = draws._replace(grids=draws.grids.to(self.rounding.dtype))
        return Batch(torch.stack(images), there[0], there[1].bool(), draws)


def _measured(similarity: Kernel, code: Tensor, codes: Tensor) -> Float[Tensor, " masks"]:
    found = similarity(code, codes)
    if not isinstance(found, Tensor) or found.shape != codes.shape[:1]:
        shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(f"the similarity gives {shape} for {len(codes)} codes, not a number each")
    return found.double()
