"""The protocol of executors, which make rows, and the executor that makes them in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, final, runtime_checkable

from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker


class Work(NamedTuple):
    """A setting, and the numbers of the images whose rows are to be made under it."""

    setting: Setting
    numbers: Sequence[int]


class Placement(NamedTuple):
    """The devices and machines that an executor is asked to use."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda` or one GPU such as `cuda:1`."""
    workers: int | None = None
    """Number of workers; None lets the executor choose."""
    ray_address: str | None = None
    """HOST:PORT of a Ray cluster, or `auto` for the one that this machine belongs to."""


@runtime_checkable
class Executor(Protocol):
    """Makes rows, in this process or elsewhere."""

    @property
    def concurrency(self) -> int:
        """The number of rows that are made at the same time."""
        ...

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """Yield the rows of this work, in any order."""
        ...

    def close(self) -> None:
        """Stop everything that the executor has started."""
        ...


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Local:
    """Makes rows in this process, on the device of its worker."""

    worker: Worker
    concurrency: ClassVar[int] = 1

    @classmethod
    def placed(cls, worker: Worker, placement: Placement) -> Local:  # noqa: ARG003
        """Return an executor that uses the worker itself, which has a device already."""
        return cls(worker=worker)

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        """Yield the rows of this work, in order."""
        for setting, numbers in work:
            yield from self.worker.rows(setting, numbers)

    def close(self) -> None:
        """Do nothing, since nothing was started."""
