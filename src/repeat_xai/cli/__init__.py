"""The command: `repeat-xai`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, by default with what the shell gave; nothing is loaded before, so that Ctrl-C is heeded."""
    try:
        with leaving_at_once():
            from repeat_xai.cli.app import run

        run(arguments)
    except KeyboardInterrupt:
        _say()
        sys.exit(INTERRUPTED)


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """While modules load, Ctrl-C ends the process where it stands: C++ that an exception passes through aborts."""
    elsewhere = threading.current_thread() is not threading.main_thread()
    if elsewhere or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    _say()
    os._exit(INTERRUPTED)


def _say() -> None:
    sys.stderr.write("repeat-xai: interrupted\n")
    sys.stderr.flush()
