"""Routing of this package's warnings to the user whose job caused them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

PACKAGE_FOLDER = Path(__file__).parent.parent
_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def warnings_sent_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Call the listener with every warning of this package that is raised in the block, on this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def routed_warnings() -> Iterator[None]:
    """Send warnings to the listener of their thread while the block runs, and all others where they went before."""
    show_before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        listener = _listener.get()
        if listener is not None and Path(filename).is_relative_to(PACKAGE_FOLDER):
            listener(str(message))
        else:
            show_before(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = show_before
