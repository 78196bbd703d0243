"""Work done by a Ray cluster: actors that hold a worker each, wherever there is room for them.

Rows are streamed back as they are made, and written here. An actor has one batch at a time, and only once it has
started: so what waits here does not grow with the work, and a cluster that has shrunk goes on with what it has left.
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
from repeat_xai.errors import ConfigurationError, OutputError, at_least, lacks_memory
from repeat_xai.experiments.executors.ray_cluster import connected
from repeat_xai.experiments.executors.work_queue import MOST_WORKERS, Answer, Batch, Queue, answers
from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.measures import MapScores
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.version import __version__

AHEAD = 16
"""Rows that an actor may have made before they are fetched."""
LONG = 60.0
"""Seconds without any actor after which that is said."""
LOST = "its machine was lost"
"""Why an actor died through no fault of its image's."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RayExecutor:
    """Actors of a Ray cluster, replaced when they or their machines die; they stay for more work until closed."""

    worker: Worker
    """Knows what rows are called; what the actors need is taken from it."""
    address: str | None = None
    """HOST:PORT of the cluster, or `auto` for that of this machine; None starts one here, for as long as it is used."""
    workers: int | None = None
    """As many as there is room for, if not told."""
    cpus: int = 1
    """Of each worker."""
    gpus: float | None = None
    """Of each worker; 1 if the cluster has any, if not told."""
    batch: int = 16
    """Images given to a worker at once."""
    retries: int = 2
    """How often an image is tried again when its worker dies."""
    _crew: list[_Crew] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("batch", "cpus"):
            at_least(name, getattr(self, name), 1)
        at_least("retries", self.retries, 0)
        at_least("workers", 1 if self.workers is None else self.workers, 1, MOST_WORKERS)
        if self.address is not None and "://" in self.address:
            raise ConfigurationError("Ray's client is not supported; run on a machine of the cluster, with auto")
        weakref.finalize(self, _end, self._crew)

    @property
    def at_once(self) -> int:
        """As many as were hired, once they are."""
        return self._crew[0].size if self._crew else self.workers or 1

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """As they come, in no order."""
        if not (some := list(work)):
            return
        if not self._crew:
            self._crew.append(_Crew(self))
        (crew,) = self._crew
        unseen = self.worker.maps if self.worker.maps is not None and self.worker.maps.grows else None
        try:
            for row in crew.rows(Queue(some, self.worker, size=self.batch, workers=crew.size, retries=self.retries)):
                if unseen is not None and row.measure == MapScores.__name__ and row.failure is None:
                    _expect_seen(unseen, row)
                    unseen = None
                yield row
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all actors, and the cluster if it was started here."""
        _end(self._crew)


@final
@dataclass(eq=False)
class _Member:
    """An actor, and what is expected of it: first that it starts, then rows."""

    actor: Any
    expected: Any
    batch: Batch | None = None


@final
class _Crew:
    """As many actors as are wanted, started or yet to be."""

    def __init__(self, asked: RayExecutor) -> None:
        with ExitStack() as connection:
            self._ray = ray = connection.enter_context(connected(asked.address))
            there = ray.cluster_resources()
            gpus = min(1, there.get("GPU", 0)) if asked.gpus is None else asked.gpus
            room = there.get("GPU", 0) / gpus if gpus else there.get("CPU", 0) / asked.cpus
            self.size = asked.workers or max(1, int(room))
            options = {"num_cpus": asked.cpus, "num_gpus": gpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
            self._kind: Any = ray.remote(_Actor).options(**options)
            maps = asked.worker.maps and asked.worker.maps.absolute()
            worker = asked.worker
            self._given = (str(Path.cwd()), "cuda" if gpus else "cpu", worker.root, worker.check, maps)
            self._members = [self._hired() for _ in range(self.size)]
            self._connection = connection.pop_all()

    def _hired(self) -> _Member:
        actor = self._kind.remote(*self._given)
        return _Member(actor, actor.version.remote())

    def rows(self, queue: Queue) -> Iterator[Row]:
        waited = False
        while self._employ(queue):
            expected = {member.expected: member for member in self._members if member.expected is not None}
            found, _ = self._ray.wait(list(expected), num_returns=1, timeout=LONG, fetch_local=False)
            if not found and not waited and all(member.batch is None for member in expected.values()):
                waited = True
                warnings.warn("the cluster has no room for any worker yet; waiting", stacklevel=2)
            for thing in found:
                yield from self._hear(expected[thing], queue)

    def _employ(self, queue: Queue) -> bool:
        """Something to do for all who have started; whether anything is to be done or under way."""
        for member in self._members:
            if member.expected is None and (batch := queue.take()) is not None:
                streaming = {"num_returns": "streaming", "_generator_backpressure_num_objects": AHEAD}
                member.batch, member.expected = batch, member.actor.answers.options(**streaming).remote(batch)
        return any(member.batch is not None for member in self._members) or not queue.empty

    def _hear(self, member: _Member, queue: Queue) -> Iterator[Row]:
        errors = self._ray.exceptions
        try:
            if member.batch is None:
                _expect_same(self._ray.get(member.expected))
                member.expected = None
                return
            answer: Answer = self._ray.get(next(member.expected))
        except StopIteration:
            member.batch = member.expected = None
            return
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            why = _cause(error)
            self._members.remove(member)
            self._dismiss(member)
            self._members.append(self._hired())
            if member.batch is None:
                queue.mourn(why)
            else:
                yield from queue.lose(member.batch, why, blamed=why != LOST)
            return
        yield from queue.hear(member.batch, answer)

    def end(self) -> None:
        with self._connection:
            for member in self._members:
                self._dismiss(member)

    def _dismiss(self, member: _Member) -> None:
        with suppress(self._ray.exceptions.RayError, RuntimeError, ValueError):  # it may be gone, and its cluster too
            self._ray.kill(member.actor)


@final
class _Actor:
    """A worker where Ray puts it, in the folder of the command if that is there too."""

    def __init__(self, folder: str, device: str, root: Path, check: Check, maps: MapStore | None) -> None:
        with suppress(OSError):
            os.chdir(folder)
        self._worker = Worker(device=device, root=root, check=check, maps=maps)

    def version(self) -> str:
        return __version__

    def answers(self, batch: Batch) -> Iterator[Answer]:
        yield from answers(self._worker, batch)


def _end(crew: list[_Crew]) -> None:
    while crew:
        crew.pop().end()


def _cause(error: Exception) -> str:
    """Why an actor died, in few words; refused where every other would die as well."""
    text = str(error)
    if "creation task" in text:
        raise ConfigurationError(
            f"a worker cannot start ({text.strip().splitlines()[-1].strip()}); "
            f"every machine of the cluster needs repeat-xai {__version__}"
        ) from error
    if "node has died" in text:
        return LOST
    return "out of memory" if lacks_memory(error) else "unexpectedly"


def _expect_seen(maps: MapStore, row: Row) -> None:
    try:
        maps.read(row.key)
    except OutputError as error:
        raise ConfigurationError(
            f"{maps.url}: maps that a worker has written are not seen here; it must be one folder for all machines"
        ) from error


def _expect_same(version: str) -> None:
    if version != __version__:
        raise ConfigurationError(f"a machine of the cluster has repeat-xai {version}, this one {__version__}")
