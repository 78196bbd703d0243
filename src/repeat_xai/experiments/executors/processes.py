"""The executor that makes rows in processes of this machine, one for each GPU or for each share of a CPU."""

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
from repeat_xai.experiments.executors.executor import Placement, Work
from repeat_xai.experiments.executors.work_queue import (
    MAX_WORKERS,
    WorkBatch,
    WorkerMessage,
    WorkQueue,
    work_through,
)
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker

CONTEXT: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
"""How processes start. One forked from this process could not use CUDA if this process has used it; one forked from a
server that has only imported the package can."""
END_TIMEOUT = 5.0
"""Seconds that a process has to end before it is killed."""
CORES_PER_WORKER = 4
"""Number of CPU cores for each process, where the number of processes is not given and there is no GPU."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Processes:
    """Makes rows in one process for each device. A process that dies is replaced; all are kept until closed."""

    worker: Worker
    """Names the rows; the processes get workers with the same dataset folder and stores."""
    devices: tuple[str, ...] = ("cpu", "cpu")
    """The device of each process; a device may be named several times."""
    batch_size: int = 16
    """Number of images that a process gets at a time."""
    retries: int = 2
    """How often an image is tried again when its process dies."""
    _processes: dict[int, _WorkerProcess] = field(default_factory=dict, init=False, repr=False)
    """The processes that are alive, by the position of their device in `devices`."""

    def __post_init__(self) -> None:
        at_least("batch_size", self.batch_size, 1)
        at_least("retries", self.retries, 0)
        if not self.devices:
            raise ConfigurationError("a device is needed, such as cpu or cuda:0")
        weakref.finalize(self, _stop_all, self._processes)

    @classmethod
    def placed(cls, worker: Worker, placement: Placement) -> Processes:
        """Return an executor with the processes that the placement asks for."""
        return cls(worker=worker, devices=spread_over_devices(placement.device, placement.workers))

    @property
    def concurrency(self) -> int:
        """Return the number of worker processes."""
        return len(self.devices)

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """Yield the rows of this work as they are made, in any order."""
        queue = WorkQueue(work, self.worker, batch_size=self.batch_size, workers=self.concurrency, retries=self.retries)
        try:
            while self._hand_out(queue):
                busy = {p.connection: place for place, p in self._processes.items() if p.batch is not None}
                for connection in wait(list(busy)):
                    yield from self._receive(busy[connection], queue)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all worker processes and wait until they have ended."""
        _stop_all(self._processes)

    def _hand_out(self, queue: WorkQueue) -> bool:
        """Give a batch to every idle process, starting those that are missing; return whether any process is busy."""
        for place, device in enumerate(self.devices):
            if place not in self._processes or self._processes[place].batch is None:
                if (batch := queue.take()) is None:
                    break
                if place not in self._processes:
                    self._processes[place] = _WorkerProcess(self.worker, device, self.devices.count("cpu"))
                self._processes[place].begin(batch)
        return any(process.batch is not None for process in self._processes.values())

    def _receive(self, place: int, queue: WorkQueue) -> Iterator[Row]:
        """Read the next message of a busy process, and yield the rows that follow from it."""
        process = self._processes[place]
        assert process.batch is not None
        try:
            message: WorkerMessage | None = process.connection.recv()
        except (EOFError, OSError):
            del self._processes[place]
            yield from queue.return_batch(process.batch, process.end())
            return
        if message is None:
            process.batch = None
        else:
            yield from queue.receive(process.batch, message)


def spread_over_devices(device: str, workers: int | None) -> tuple[str, ...]:
    """Return the device of each process, such that all GPUs have about the same number of processes."""
    at_least("workers", 1 if workers is None else workers, 1, MAX_WORKERS)
    gpus = torch.cuda.device_count()
    names = [f"cuda:{number}" for number in range(gpus)] if gpus and device in ("auto", "cuda") else [device]
    names = ["cpu"] if names == ["auto"] else names
    count = workers or (len(names) if names != ["cpu"] else max(2, (os.cpu_count() or 1) // CORES_PER_WORKER))
    return tuple(names[number % len(names)] for number in range(count))


@final
class _WorkerProcess:
    """A process with a worker in it, and the batch that it is working on."""

    def __init__(self, worker: Worker, device: str, cpu_processes: int) -> None:
        self.batch: WorkBatch | None = None
        self.connection, other_end = CONTEXT.Pipe()
        threads = max(1, torch.get_num_threads() // cpu_processes) if device == "cpu" else None
        arguments = (other_end, device, threads, worker.root, worker.check, worker.maps)
        self.process = CONTEXT.Process(target=_run_worker, args=arguments, daemon=True)
        if sys.platform == "linux":
            CONTEXT.set_forkserver_preload(["repeat_xai.experiments.executors.worker_imports"])
        self.process.start()
        other_end.close()

    def begin(self, batch: WorkBatch) -> None:
        """Send a batch to the process."""
        self.batch = batch
        with suppress(OSError):  # that the process has died is noticed when its messages are read
            self.connection.send(batch)

    def end(self) -> str:
        """Wait until the process has ended, or kill it, and return how it ended."""
        self.connection.close()
        self.process.join(END_TIMEOUT)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _stop_all(processes: dict[int, _WorkerProcess]) -> None:
    """Stop these processes and remove them from the dictionary."""
    for worker in processes.values():
        worker.process.terminate()
    while processes:
        processes.popitem()[1].end()


def _run_worker(
    connection: Connection, device: str, threads: int | None, root: Path, check: Check, maps: MapStore | None
) -> None:
    """Make the rows of every batch that is received, until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    # Libraries create locks here, as tqdm does while torch exports a network. With the start method "fork" a lock's
    # semaphore has no name and vanishes with the process; with others it is left behind when the process is terminated,
    # and a warning of leaked semaphores follows. A daemonic process such as this one starts no others in any case.
    multiprocessing.set_start_method("fork", force=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if threads is not None:
        torch.set_num_threads(threads)
    with suppress(RuntimeError, ValueError, AssertionError):  # a device that does not exist is refused by the encoder
        torch.cuda.set_device(device)
    worker = Worker(device=device, root=root, check=check, maps=maps)
    with suppress(EOFError, OSError):
        while True:
            for message in work_through(worker, connection.recv()):
                connection.send(message)
            connection.send(None)


def _end_with_parent() -> None:
    """End this process when the process that started it has ended, even if that was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
