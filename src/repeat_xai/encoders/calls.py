"""Counting encoder calls: one image that goes through an encoder is one call.

Encoders report their calls here, and whoever wants to know of them listens: a progress bar, or the meter whose count
becomes part of an explanation's provenance. Neither is passed through the functions in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Listener = Callable[[int], None]
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def count_calls(calls: int) -> None:
    """Report to every listener that this many images have gone through an encoder."""
    for listener in _listeners.get():
        listener(calls)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Give the listener the number of images of every encoder call made inside the block.

    >>> calls = []
    >>> with listening(calls.append):
    ...     count_calls(64)
    >>> calls
    [64]
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Report no encoder call made inside the block: used for trials, which are no part of a method's cost.

    >>> calls = []
    >>> with listening(calls.append), uncounted():
    ...     count_calls(64)
    >>> calls
    []
    """
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)


@dataclass
class Meter:
    """The number of encoder calls, and the time, since the meter was started."""

    started: float = field(default_factory=time.perf_counter)
    calls: int = 0

    def add(self, calls: int) -> None:
        """Add encoder calls to the count."""
        self.calls += calls

    @property
    def seconds(self) -> float:
        """Seconds since the meter was started."""
        return time.perf_counter() - self.started


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the encoder calls made inside the block."""
    meter = Meter()
    with listening(meter.add):
        yield meter
