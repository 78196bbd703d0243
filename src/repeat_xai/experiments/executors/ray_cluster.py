"""The connection to a Ray cluster, which no interrupt leaves half made or half ended."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from repeat_xai.errors import ConfigurationError, reason

SOON = 10.0
"""Seconds in which a cluster answers if it is there."""
SHARED = 80 * 2**20
"""Bytes of Ray's object store on a cluster of our own: rows are small and never lie in it."""
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
"""Nothing is reported to Ray's makers; at SIGTERM no stack is printed, and no abort follows three seconds later."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield Ray itself, connected to the cluster at this address; one that was connected before stays so.

    Without an address a cluster is started here for the time of the block.
    """
    os.environ |= SETTINGS
    with ExitStack() as stack:
        with uninterrupted():
            ray = _imported()
            if not ray.is_initialized():
                stack.callback(_shut_down, ray)
                with _changed(ray._private.utils, "set_sigterm_handler", lambda _: None):
                    _start(ray) if address is None else _join(ray, address)
        yield ray


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until the block has ended; a second one is heeded at once.

    An interrupt that passes through Ray while it starts or ends leaves processes behind. Ray also takes SIGTERM for
    itself: whoever handled these signals before the block does so again after it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[signal.Signals] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: handler for kind in kinds if (handler := signal.getsignal(kind)) is not None}

    def put_off(number: int, _: object) -> None:
        if came:
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)
        came.append(signal.Signals(number))

    for kind in before:
        signal.signal(kind, put_off)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
    if came:
        signal.raise_signal(came[0])


def _imported() -> Any:
    try:
        import ray
        import ray._private.utils
    except ImportError as error:
        raise ConfigurationError("the executor ray needs Ray; pip install 'repeat-xai[ray]'") from error
    return ray


def _join(ray: Any, address: str) -> None:
    """Connect to the cluster that is there; where nobody answers, Ray itself would try for minutes."""
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=SOON).close()
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigurationError(
            f"no Ray cluster at {address} ({reason(error)}); see `ray start --help`, "
            "and set RAY_AUTH_MODE=token for one that asks for a token"
        ) from error


def _start(ray: Any) -> None:
    """Start a cluster that no other machine can reach: told that there are no others, Ray listens on loopback alone."""
    from ray._private import ray_constants

    with _changed(ray_constants, "ENABLE_RAY_CLUSTER", False):
        ray.init(
            address="local",
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            object_store_memory=SHARED,
        )


def _shut_down(ray: Any) -> None:
    """Disconnect, and end a cluster that was started here; of one that could not be reached there is nothing to end."""
    if ray.is_initialized():
        with uninterrupted():
            ray.shutdown()


@contextmanager
def _changed(module: Any, name: str, value: object) -> Iterator[None]:
    """Give a variable of a module another value for the time of the block."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
