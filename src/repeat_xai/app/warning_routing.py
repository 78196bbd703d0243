"""Warnings of this package, told to the user whose work they concern."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).parent.parent
_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """What is warned of in the block, on this thread, is told to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def routing() -> Iterator[None]:
    """Warnings go to their listener for the block; others where they went before."""
    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        listener = _listener.get()
        if listener is not None and Path(filename).is_relative_to(HERE):
            listener(str(message))
        else:
            before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
