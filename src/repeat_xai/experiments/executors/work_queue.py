"""Work for workers elsewhere: cut into batches, answered row by row, and tried again when a worker dies.

What is left of a batch whose worker died is tried image by image, so that the one that kills workers is found and the
others are done; it is given up after a few deaths, which its row tells. For a machine that is lost no image is blamed.
"""

from __future__ import annotations

import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, final

from repeat_xai.errors import ConfigurationError, RepeatError
from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.worker import Worker

PATIENCE = 10
"""Deaths of each worker with not one row in between, after which all is given up."""

MOST_WORKERS = 1000


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Some images under one setting."""

    setting: Setting
    left: dict[int, str]
    """Numbers of the images that are not answered yet, with what their rows will be called."""
    deaths: int = 0
    """Of workers, over these images."""


class Made(NamedTuple):
    """A row, and the number of its image."""

    number: int
    row: Row


class Said(NamedTuple):
    """A warning."""

    words: str


class Stopped(NamedTuple):
    """Why a worker cannot go on, where that is an error of the program."""

    trace: str


Answer = Made | Said | Stopped | RepeatError


def answers(worker: Worker, batch: Batch) -> Iterator[Answer]:
    """What a worker has to say of a batch."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            for number, row in worker.numbered_rows(batch.setting, list(batch.left)):
                yield from (Said(str(warning.message)) for warning in heard)
                heard.clear()
                yield Made(number, row)
        except RepeatError as error:
            yield error
        except Exception:
            yield Stopped(traceback.format_exc())


@final
class Queue:
    """Batches of at most `size` images for so many workers, and what becomes of them."""

    def __init__(self, work: Iterable[Work], worker: Worker, *, size: int, workers: int, retries: int) -> None:
        self._worker, self._workers, self._retries = worker, workers, retries
        self._fresh = (batch for part in work for batch in self._cut(part, size))
        self._again: deque[Batch] = deque()
        self._barren = 0

    def _cut(self, work: Work, size: int) -> Iterator[Batch]:
        """So that every worker has something to do."""
        setting, numbers = work
        step = max(1, min(size, -(-len(numbers) // self._workers)))
        for start in range(0, len(numbers), step):
            some = numbers[start : start + step]
            yield Batch(setting=setting, left=dict(zip(some, self._worker.keys(setting, some), strict=True)))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do now: something may come back from a worker that dies."""
        if not self._again:
            self._again.extend(islice(self._fresh, 1))
        return not self._again

    def take(self) -> Batch | None:
        """The next batch, if there is one."""
        return None if self.empty else self._again.popleft()

    def hear(self, batch: Batch, answer: Answer) -> Iterator[Row]:
        """The row, if it is one; what stops the worker stops everything."""
        if isinstance(answer, RepeatError):
            raise answer
        if isinstance(answer, Stopped):
            raise RuntimeError(f"a worker failed:\n{answer.trace}")
        if isinstance(answer, Said):
            warnings.warn(answer.words, stacklevel=2)
            return
        number, row = answer
        if batch.left.pop(number) != row.key:
            raise ConfigurationError(
                f"{row.dataset}, {row.image}: a worker sees another dataset or encoder than is seen here; "
                "every machine needs the same files in the same places"
            )
        self._barren = 0
        yield row

    def lose(self, batch: Batch, why: str, *, blamed: bool = True) -> Iterator[Row]:
        """The worker of a batch died: what is left of it is tried again, or given up if an image of it is to blame."""
        self.mourn(why)
        deaths = batch.deaths + blamed
        for number, key in batch.left.items():
            if deaths > self._retries:
                times = "once" if deaths == 1 else f"{deaths} times"
                yield self._worker.failed_row(batch.setting, number, f"its worker died {times} ({why})")
            else:
                self._again.append(Batch(setting=batch.setting, left={number: key}, deaths=deaths))

    def mourn(self, why: str) -> None:
        """A worker died; too many deaths in a row are not borne."""
        self._barren += 1
        if self._barren > PATIENCE * self._workers:
            raise RepeatError(f"workers died {self._barren} times with nothing done in between ({why}); run again")
        warnings.warn(f"a worker died ({why}); what it was doing is tried again", stacklevel=2)
