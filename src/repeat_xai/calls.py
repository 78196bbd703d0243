"""Encoder calls, told where they are made: one image through the encoder is one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
