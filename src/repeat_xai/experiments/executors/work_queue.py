"""A queue of work for workers in other processes: it is cut into batches, and repeated when a worker dies.

When a worker dies, the images that are left of its batch are repeated one by one, so that an image that kills workers
is identified and the other images get their rows. An image is given up after a few crashes, and its row says so. The
loss of a whole machine does not count against any image.
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
from repeat_xai.experiments.executors.executor import Work
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker

MAX_CRASHES_PER_WORKER = 10
"""Number of crashes for each worker, without a single row in between, after which the run ends with an error."""
MAX_WORKERS = 1000


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WorkBatch:
    """Some images under one setting, which one worker measures."""

    setting: Setting
    pending: dict[int, str]
    """The keys of the rows that are still to be made, by the numbers of their images."""
    crashes: int = 0
    """Number of workers that have died at these images."""


class NumberedRow(NamedTuple):
    """A row, and the number of its image."""

    number: int
    row: Row


class WorkerWarning(NamedTuple):
    """The text of a warning that a worker has issued."""

    text: str


class WorkerFailure(NamedTuple):
    """The traceback of an unexpected error, after which a worker cannot go on."""

    traceback: str


WorkerMessage = NumberedRow | WorkerWarning | WorkerFailure | RepeatError
"""What a worker sends back: a row, a warning, or the error that stopped it."""


def work_through(worker: Worker, batch: WorkBatch) -> Iterator[WorkerMessage]:
    """Yield the messages of a worker that makes the rows of a batch; errors are yielded, not raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        end: WorkerMessage | None = None
        try:
            for number, row in worker.numbered_rows(batch.setting, list(batch.pending)):
                yield from _taken(caught)
                yield NumberedRow(number, row)
        except RepeatError as error:
            end = error
        except Exception:
            end = WorkerFailure(traceback.format_exc())
        yield from _taken(caught)
        if end is not None:
            yield end


def _taken(caught: list[warnings.WarningMessage]) -> Iterator[WorkerWarning]:
    """Take the warnings out of the list, and yield their texts."""
    while caught:
        yield WorkerWarning(str(caught.pop(0).message))


@final
class WorkQueue:
    """Batches of at most `batch_size` images for a number of workers, and the images that must be repeated."""

    def __init__(self, work: Iterable[Work], worker: Worker, *, batch_size: int, workers: int, retries: int) -> None:
        self._worker, self._workers, self._retries = worker, workers, retries
        self._new = (batch for part in work for batch in self._cut(part, batch_size))
        self._waiting: deque[WorkBatch] = deque()
        self._crashes_in_a_row = 0

    def _cut(self, work: Work, batch_size: int) -> Iterator[WorkBatch]:
        """Yield the batches of one setting, small enough that every worker gets one."""
        setting, numbers = work
        step = max(1, min(batch_size, -(-len(numbers) // self._workers)))
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            yield WorkBatch(setting=setting, pending=dict(zip(part, self._worker.keys(setting, part), strict=True)))

    @property
    def empty(self) -> bool:
        """Whether no batch is waiting now; one may still come back from a worker that dies."""
        if not self._waiting:
            self._waiting.extend(islice(self._new, 1))
        return not self._waiting

    def take(self) -> WorkBatch | None:
        """Remove and return the next batch, or return None if none is waiting."""
        return None if self.empty else self._waiting.popleft()

    def receive(self, batch: WorkBatch, message: WorkerMessage) -> Iterator[Row]:
        """Yield the row that a message holds, if any; repeat a warning here, and raise an error here."""
        if isinstance(message, RepeatError):
            raise message
        if isinstance(message, WorkerFailure):
            raise RuntimeError(f"a worker failed:\n{message.traceback}")
        if isinstance(message, WorkerWarning):
            warnings.warn(message.text, stacklevel=2)
            return
        number, row = message
        if batch.pending.pop(number) != row.key:
            raise ConfigurationError(
                f"{row.dataset}, {row.image}: a worker has another dataset or encoder than this process; "
                "every machine needs the same files in the same places"
            )
        self._crashes_in_a_row = 0
        yield row

    def return_batch(self, batch: WorkBatch, cause: str, *, count_crash: bool = True) -> Iterator[Row]:
        """Put the images back that are left of a dead worker's batch, and yield the rows of those that are given up.

        `count_crash` is false where the images cannot be the reason, as when a machine is lost.
        """
        self.report_crash(cause)
        crashes = batch.crashes + count_crash
        for number, key in batch.pending.items():
            if crashes > self._retries:
                times = "once" if crashes == 1 else f"{crashes} times"
                yield self._worker.failed_row(batch.setting, number, f"its worker died {times} ({cause})")
            else:
                self._waiting.append(WorkBatch(setting=batch.setting, pending={number: key}, crashes=crashes))

    def report_crash(self, cause: str) -> None:
        """Warn that a worker died; raise an error after `MAX_CRASHES_PER_WORKER` × workers crashes in a row."""
        self._crashes_in_a_row += 1
        if self._crashes_in_a_row > MAX_CRASHES_PER_WORKER * self._workers:
            raise RepeatError(
                f"workers died {self._crashes_in_a_row} times in a row without finishing an image ({cause}); run again"
            )
        warnings.warn(f"a worker died ({cause}); its images are tried again", stacklevel=2)
