"""Work done by processes of this machine, one a device: several GPUs, or several shares of a CPU."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, final

import torch

from repeat_xai.data.content_keys import Check
from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.experiments.executors.work_queue import Answer, Batch, Queue, answers
from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.worker import Worker

CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
"""A process forked from this one could not use CUDA; one forked from a server that has only imported us can."""
GRACE = 5.0
"""Seconds a process has to end."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Processes:
    """A process for each of these devices, replaced when it dies; they stay for more work until all is closed."""

    worker: Worker
    """Knows what rows are called; what the processes need is taken from it."""
    devices: tuple[str, ...] = ("cpu", "cpu")
    """One may be named several times."""
    batch: int = 16
    """Images given to a process at once."""
    retries: int = 2
    """How often an image is tried again when its process dies."""
    _crew: dict[int, _Member] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        at_least("batch", self.batch, 1)
        at_least("retries", self.retries, 0)
        if not self.devices:
            raise ConfigurationError("a device is needed, such as cpu or cuda:0")
        weakref.finalize(self, _end, self._crew)

    @property
    def at_once(self) -> int:
        return len(self.devices)

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """As they come, in no order."""
        queue = Queue(work, self.worker, size=self.batch, workers=self.at_once, retries=self.retries)
        try:
            while self._employ(queue):
                busy = {m.connection: place for place, m in self._crew.items() if m.batch is not None}
                for connection in wait(list(busy)):
                    yield from self._hear(busy[connection], queue)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all processes."""
        _end(self._crew)

    def _employ(self, queue: Queue) -> bool:
        """Something to do for all; whether anyone has."""
        for place, device in enumerate(self.devices):
            if place not in self._crew or self._crew[place].batch is None:
                if (batch := queue.take()) is None:
                    break
                if place not in self._crew:
                    self._crew[place] = _Member(self.worker, device, self.devices.count("cpu"))
                self._crew[place].begin(batch)
        return any(member.batch is not None for member in self._crew.values())

    def _hear(self, place: int, queue: Queue) -> Iterator[Row]:
        member = self._crew[place]
        assert member.batch is not None
        try:
            answer: Answer | None = member.connection.recv()
        except (EOFError, OSError):
            del self._crew[place]
            yield from queue.lose(member.batch, member.end())
            return
        if answer is None:
            member.batch = None
        else:
            yield from queue.hear(member.batch, answer)


@final
class _Member:
    """A process with a worker in it, and what it is doing."""

    def __init__(self, worker: Worker, device: str, shares: int) -> None:
        self.batch: Batch | None = None
        self.connection, theirs = CONTEXT.Pipe()
        threads = max(1, torch.get_num_threads() // shares) if device == "cpu" else None
        plan = (theirs, device, threads, worker.root, worker.check, worker.maps)
        self.process = CONTEXT.Process(target=_serve, args=plan, daemon=True)
        if sys.platform == "linux":
            CONTEXT.set_forkserver_preload([__name__])
        self.process.start()
        theirs.close()

    def begin(self, batch: Batch) -> None:
        self.batch = batch
        with suppress(OSError):  # that it has died is heard when it is asked
            self.connection.send(batch)

    def end(self) -> str:
        """Why it ended."""
        self.connection.close()
        self.process.join(GRACE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _end(crew: dict[int, _Member]) -> None:
    for member in crew.values():
        member.process.terminate()
    while crew:
        crew.popitem()[1].end()


def _serve(
    connection: Connection, device: str, threads: int | None, root: Path, check: Check, maps: MapStore | None
) -> None:
    """Answer batches until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    threading.Thread(target=_follow, daemon=True).start()
    if threads is not None:
        torch.set_num_threads(threads)
    with suppress(RuntimeError, ValueError, AssertionError):  # what is no device is refused by the encoder
        torch.cuda.set_device(device)
    worker = Worker(device=device, root=root, check=check, maps=maps)
    with suppress(EOFError, OSError):
        while True:
            for answer in answers(worker, connection.recv()):
                connection.send(answer)
            connection.send(None)


def _follow() -> None:
    """End when the process that started this one has ended, even if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
