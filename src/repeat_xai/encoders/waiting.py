"""Waiting for what may take very long or never end, such that the wait can be given up.

While native code runs, Python can neither notice Ctrl-C nor ask whether a job was cancelled: it does both when the code
returns. ONNX Runtime runs networks that loop without end, and never returns from them. Such code therefore runs on a
thread of its own, and the thread that needs its result waits in Python.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar, final, runtime_checkable

T = TypeVar("T")
POLL_SECONDS = 0.2
"""Time between two checks whether a wait is to be given up."""
END_SECONDS = 3.0
"""Time that a call has to end after it was asked to. Then its thread is left behind."""
_check: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)


@runtime_checkable
class Lock(Protocol):
    """A lock of `threading`, of any kind."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...
    def release(self) -> None: ...


@contextmanager
def checking(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` at intervals in every wait of the block on this thread; it gives the wait up by an exception."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


@contextmanager
def holding(lock: Lock) -> Iterator[None]:
    """Hold a lock during the block. The wait for it can be given up."""
    while not lock.acquire(timeout=POLL_SECONDS):
        _check.get()()
    try:
        yield
    finally:
        lock.release()


@final
class AbandonableThread(threading.Thread):
    """A thread that may be inside native code that never returns. The program can end without it."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(target=work, daemon=True)


def call_on_thread(call: Callable[[], T], *, end: Callable[[], None] | None = None) -> T:
    """Return the result of a call that runs on a thread of its own; the wait for it can be given up.

    If the wait is given up, `end` is called to end the call. A call that ends neither by that nor by itself within
    `END_SECONDS` is left behind on its thread. A call that nothing can end has no `end`, and is left behind at once.

    >>> call_on_thread(lambda: 6 * 7)
    42
    """
    outcome: Future[T] = Future()
    finished = threading.Lock()  # a Condition, and so a Future, may stay locked if an interrupt comes while it waits
    finished.acquire()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            finished.release()

    try:
        AbandonableThread(work).start()
        while not finished.acquire(timeout=POLL_SECONDS):
            _check.get()()
    except BaseException:  # of `check`, or a KeyboardInterrupt
        if end is not None:
            end()
            finished.acquire(timeout=END_SECONDS)
        raise
    return outcome.result()
