"""Encoder calls are counted where they are made: one image through the encoder is one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import final

Counter = Callable[[int], None]
_counters: ContextVar[tuple[Counter, ...]] = ContextVar("counters", default=())


def add_calls(calls: int) -> None:
    """Report that this many images have gone through an encoder."""
    for counter in _counters.get():
        counter(calls)


@contextmanager
def counting(counter: Counter) -> Iterator[None]:
    """Call `counter` with the number of images at each encoder call in the block.

    >>> numbers = []
    >>> with counting(numbers.append):
    ...     add_calls(64)
    >>> numbers
    [64]
    """
    token = _counters.set((*_counters.get(), counter))
    try:
        yield
    finally:
        _counters.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Count no encoder calls in the block.

    >>> numbers = []
    >>> with counting(numbers.append), uncounted():
    ...     add_calls(64)
    >>> numbers
    []
    """
    token = _counters.set(())
    try:
        yield
    finally:
        _counters.reset(token)


@final
@dataclass
class Meter:
    """Encoder calls made, and seconds spent, since its start."""

    started: float = field(default_factory=time.perf_counter)
    calls: int = 0

    def add(self, calls: int) -> None:
        """Add this many encoder calls to the count."""
        self.calls += calls

    @property
    def seconds(self) -> float:
        """Return the seconds since the meter was started."""
        return time.perf_counter() - self.started


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the encoder calls made in the block."""
    meter = Meter()
    with counting(meter.add):
        yield meter
