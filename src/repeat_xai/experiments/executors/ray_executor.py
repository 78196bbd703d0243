"""The executor that makes rows on a Ray cluster, by actors that hold a worker each.

Rows are streamed back while they are made, and written by this process. An actor gets one batch at a time, and the
first only after it has started. The memory used here therefore does not grow with the work, and a cluster that shrinks
goes on with the actors that are left.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from repeat_xai.data.content_keys import Check
from repeat_xai.errors import ConfigurationError, OutputError, at_least, choose, lacks_memory
from repeat_xai.experiments.executors.executor import Placement, Work
from repeat_xai.experiments.executors.ray_cluster import STREAMED_RESULTS, connected
from repeat_xai.experiments.executors.work_queue import (
    MAX_WORKERS,
    WorkBatch,
    WorkerMessage,
    WorkQueue,
    work_through,
)
from repeat_xai.experiments.map_scores import MapScores
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.version import __version__

WARN_WITHOUT_ACTORS = 60.0
"""Seconds without any running actor after which a warning is issued."""
GPUS_PER_WORKER = {"auto": None, "cpu": 0.0, "cuda": 1.0}
"""Number of GPUs for each worker, by the device that is asked for; with None, 1 if the cluster has any, else 0."""
MACHINE_LOST = "its machine was lost"
"""The cause of an actor's death that is not the fault of its images."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RayExecutor:
    """Makes rows by actors of a Ray cluster. An actor that dies is replaced; all are kept until closed."""

    worker: Worker
    """Names the rows; the actors get workers with the same dataset folder and stores."""
    address: str | None = None
    """HOST:PORT of the cluster, or `auto` for the one that this machine belongs to; None starts one on this machine."""
    workers: int | None = None
    """Number of actors; None starts as many as the cluster has room for."""
    cpus: int = 1
    """Number of CPU cores for each actor."""
    gpus: float | None = None
    """Number of GPUs for each actor; None stands for 1 if the cluster has any, else 0."""
    batch_size: int = 16
    """Number of images that an actor gets at a time."""
    retries: int = 2
    """How often an image is tried again when its actor dies."""
    _actors: list[_Actors] = field(default_factory=list, init=False, repr=False)
    """The actors, once there is work for them; at most one entry."""

    def __post_init__(self) -> None:
        for name in ("batch_size", "cpus"):
            at_least(name, getattr(self, name), 1)
        at_least("retries", self.retries, 0)
        at_least("workers", 1 if self.workers is None else self.workers, 1, MAX_WORKERS)
        if self.address is not None and "://" in self.address:
            raise ConfigurationError("Ray's client is not supported; run on a machine of the cluster, with auto")
        weakref.finalize(self, _end_all, self._actors)

    @classmethod
    def placed(cls, worker: Worker, placement: Placement) -> RayExecutor:
        """Return an executor with the actors that the placement asks for."""
        choose("device", placement.device, GPUS_PER_WORKER)
        return cls(
            worker=worker,
            address=placement.ray_address,
            workers=placement.workers,
            gpus=GPUS_PER_WORKER[placement.device],
        )

    @property
    def concurrency(self) -> int:
        """The number of actors; before the first work it is known only if `workers` is given."""
        return self._actors[0].size if self._actors else self.workers or 1

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """Yield the rows of this work as they are made, in any order."""
        if not (parts := list(work)):
            return
        if not self._actors:
            self._actors.append(_Actors(self))
        (actors,) = self._actors
        queue = WorkQueue(parts, self.worker, batch_size=self.batch_size, workers=actors.size, retries=self.retries)
        unchecked = self.worker.maps if self.worker.maps is not None and self.worker.maps.writable else None
        try:
            for row in actors.rows(queue):
                if unchecked is not None and row.measure == MapScores.__name__ and row.failure is None:
                    _expect_shared_maps(unchecked, row)
                    unchecked = None
                yield row
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all actors, and the cluster if it was started here."""
        _end_all(self._actors)


@final
@dataclass(eq=False)
class _ActorState:
    """An actor, and the result that is awaited from it: its version when it starts, then the rows of a batch."""

    actor: Any
    awaited: Any
    batch: WorkBatch | None = None


@final
class _Actors:
    """All actors of an executor, including those that have not started yet."""

    def __init__(self, executor: RayExecutor) -> None:
        with ExitStack() as connection:
            self._ray = ray = connection.enter_context(connected(executor.address))
            resources = ray.cluster_resources()
            gpus = min(1, resources.get("GPU", 0)) if executor.gpus is None else executor.gpus
            capacity = resources.get("GPU", 0) / gpus if gpus else resources.get("CPU", 0) / executor.cpus
            self.size = executor.workers or max(1, int(capacity))
            options = {"num_cpus": executor.cpus, "num_gpus": gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
            self._actor_class: Any = ray.remote(_RemoteWorker).options(**options)
            worker = executor.worker
            maps = worker.maps and worker.maps.absolute()
            self._arguments = (str(Path.cwd()), "cuda" if gpus else "cpu", worker.root, worker.check, maps)
            self._states = [self._start_actor() for _ in range(self.size)]
            self._connection = connection.pop_all()

    def _start_actor(self) -> _ActorState:
        """Ask the cluster for an actor, which may have to wait for room."""
        actor = self._actor_class.remote(*self._arguments)
        return _ActorState(actor, actor.version.remote())

    def rows(self, queue: WorkQueue) -> Iterator[Row]:
        """Yield the rows of the work in a queue."""
        warned = False
        while self._hand_out(queue):
            awaited = {state.awaited: state for state in self._states if state.awaited is not None}
            ready, _ = self._ray.wait(list(awaited), num_returns=1, timeout=WARN_WITHOUT_ACTORS, fetch_local=False)
            if not ready and not warned and all(state.batch is None for state in awaited.values()):
                warned = True
                warnings.warn("the cluster has no room for any worker yet; waiting", stacklevel=2)
            for reference in ready:
                yield from self._receive(awaited[reference], queue)

    def _hand_out(self, queue: WorkQueue) -> bool:
        """Give a batch to every actor that has started and is idle; return whether work is waiting or under way."""
        for state in self._states:
            if state.awaited is None and (batch := queue.take()) is not None:
                method = state.actor.work_through.options(**STREAMED_RESULTS)
                state.batch, state.awaited = batch, method.remote(batch)
        return any(state.batch is not None for state in self._states) or not queue.empty

    def _receive(self, state: _ActorState, queue: WorkQueue) -> Iterator[Row]:
        """Fetch the next result of an actor, and yield the rows that follow from it."""
        errors = self._ray.exceptions
        try:
            if state.batch is None:
                _expect_same_version(self._ray.get(state.awaited))
                state.awaited = None
                return
            message: WorkerMessage = self._ray.get(next(state.awaited))
        except StopIteration:
            state.batch = state.awaited = None
            return
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            cause = _cause_of_death(error)
            self._states.remove(state)
            self._kill(state)
            self._states.append(self._start_actor())
            if state.batch is None:
                queue.report_crash(cause)
            else:
                yield from queue.return_batch(state.batch, cause, count_crash=cause != MACHINE_LOST)
            return
        yield from queue.receive(state.batch, message)

    def end(self) -> None:
        """Stop all actors and end the connection."""
        with self._connection:
            for state in self._states:
                self._kill(state)

    def _kill(self, state: _ActorState) -> None:
        """Stop an actor if it is still alive."""
        with suppress(self._ray.exceptions.RayError, RuntimeError, ValueError):  # it may be gone, and its cluster too
            self._ray.kill(state.actor)


@final
class _RemoteWorker:
    """The actor: a worker on some machine of the cluster, in the working folder of the command if it exists there."""

    def __init__(self, folder: str, device: str, root: Path, check: Check, maps: MapStore | None) -> None:
        with suppress(OSError):
            os.chdir(folder)
        self._worker = Worker(device=device, root=root, check=check, maps=maps)

    def version(self) -> str:
        """Return the version of this package on the actor's machine."""
        return __version__

    def work_through(self, batch: WorkBatch) -> Iterator[WorkerMessage]:
        """Yield the messages of the worker while it makes the rows of a batch."""
        yield from work_through(self._worker, batch)


def _end_all(actors: list[_Actors]) -> None:
    """Stop these actors and remove them from the list."""
    while actors:
        actors.pop().end()


def _cause_of_death(error: Exception) -> str:
    """Return why an actor died, in a few words; raise an error if every other actor would die as well."""
    text = str(error)
    if "creation task" in text:
        raise ConfigurationError(
            f"a worker cannot start ({text.strip().splitlines()[-1].strip()}); "
            f"every machine of the cluster needs repeat-xai {__version__}"
        ) from error
    if "node has died" in text:
        return MACHINE_LOST
    return "out of memory" if lacks_memory(error) else "unexpectedly"


def _expect_shared_maps(maps: MapStore, row: Row) -> None:
    """Raise an error if the maps that a worker has written for a row cannot be read here."""
    try:
        maps.read(row.key)
    except OutputError as error:
        raise ConfigurationError(
            f"{maps.url}: maps that a worker has written are not found here; it must be one folder for all machines"
        ) from error


def _expect_same_version(version: str) -> None:
    """Raise an error if a worker has another version of this package than this process."""
    if version != __version__:
        raise ConfigurationError(f"a machine of the cluster has repeat-xai {version}, this one {__version__}")
