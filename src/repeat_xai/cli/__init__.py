"""The command: `repeat-xai`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

INTERRUPTED = 130
"""Exit status of a command that was interrupted."""
THREAD_SECONDS = 1.0
"""Time that threads have to end when the command ends, before they are left behind."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with these arguments, by default those of the shell.

    Nothing is imported before Ctrl-C is handled.
    """
    try:
        with ending_as_by_ctrl_c():
            with leaving_at_once():
                from repeat_xai.cli.commands import run

            run(arguments)
    except KeyboardInterrupt:
        _print_interrupted()
        _leave_without_stuck_threads(INTERRUPTED)
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if isinstance(end.code, int):  # Typer leaves by a status
            _leave_without_stuck_threads(end.code)
        raise


@contextmanager
def ending_as_by_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM, by which schedulers end a process, like Ctrl-C in the block.

    After one has come, further ones are ignored also after the block, since the process is about to end.
    """
    if not _in_charge(signal.SIGTERM, signal.SIG_DFL):
        yield
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def interrupt(*_: object) -> NoReturn:
    """Raise a KeyboardInterrupt, and ignore SIGTERM from now on, since some senders repeat it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """End the process at once on an interrupt while modules load: C++ aborts if an exception passes through it."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt}
    ours = {kind: handler for kind, handler in handlers.items() if _in_charge(kind, handler)}
    for kind in ours:
        signal.signal(kind, _leave)
    try:
        yield
    finally:
        for kind, handler in ours.items():
            signal.signal(kind, handler)


def _in_charge(kind: signal.Signals, handler: object) -> bool:
    """Return whether this is the main thread and the signal has this handler, so that nobody else handles it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(kind) is handler


def _leave(*_: object) -> None:
    """End the process without any cleaning up."""
    _print_interrupted()
    os._exit(INTERRUPTED)


def _leave_without_stuck_threads(status: int) -> None:
    """End the process at once if a thread is still in a call that nothing can end, such as an encoder's.

    Python would otherwise wait for it, or the native code would abort when it found Python gone.
    """
    if "repeat_xai.encoders.waiting" not in sys.modules:  # no such thread was started
        return
    import multiprocessing

    from repeat_xai.encoders.waiting import AbandonableThread

    deadline = time.monotonic() + THREAD_SECONDS
    threads = [thread for thread in threading.enumerate() if isinstance(thread, AbandonableThread)]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        for child in multiprocessing.active_children():  # os._exit would leave them behind
            child.kill()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody may be reading any more
                stream.flush()
        os._exit(status)


def _print_interrupted() -> None:
    """Print that the command was interrupted."""
    sys.stderr.write("repeat-xai: interrupted\n")
    sys.stderr.flush()
