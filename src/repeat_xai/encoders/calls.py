"""Encoder calls, told where they are made: one image through the encoder is one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

Listener = Callable[[int], None]
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


def tell(calls: int) -> None:
    """Say that `calls` images have gone through an encoder."""
    for listener in _listeners.get():
        listener(calls)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of every encoder call made inside the block.

    >>> heard = []
    >>> with listening(heard.append):
    ...     tell(64)
    >>> heard
    [64]
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Tell nobody of the encoder calls made inside the block.

    >>> heard = []
    >>> with listening(heard.append), unheard():
    ...     tell(64)
    >>> heard
    []
    """
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)


@dataclass
class Meter:
    """Encoder calls made and seconds spent so far."""

    started: float = field(default_factory=time.perf_counter)
    calls: int = 0

    def hear(self, calls: int) -> None:
        self.calls += calls

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the encoder calls made inside the block."""
    meter = Meter()
    with listening(meter.hear):
        yield meter
