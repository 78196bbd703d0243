"""The connection to a Ray cluster, which is neither half made nor half ended after an interrupt.

This is the only module that uses what Ray does not document; each use says why there is no other way.
"""

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

CONNECT_TIMEOUT = 10.0
"""Seconds in which a cluster must answer."""
OBJECT_STORE_BYTES = 80 * 2**20
"""Size of Ray's object store on a cluster that is started here: rows are small and do not use it."""
RAY_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
"""Settings of Ray: no usage is reported to its makers; SIGTERM prints no stack and does not abort the process later."""
MAX_UNFETCHED_ROWS = 16
"""Number of rows that an actor may have made before they are fetched."""
STREAMED_RESULTS = {"num_returns": "streaming", "_generator_backpressure_num_objects": MAX_UNFETCHED_ROWS}
"""Options of an actor's method that yields. The limit has no public name; without it, an actor that is faster than the
fetching process fills that process's memory."""


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield the module `ray`, connected to the cluster at this address; an earlier connection is used and kept.

    Without an address a cluster is started on this machine for the time of the block.
    """
    os.environ |= RAY_ENVIRONMENT
    with ExitStack() as stack:
        with interrupts_deferred():
            ray = _import_ray()
            if not ray.is_initialized():
                stack.callback(_shut_down, ray)
                # Ray replaces the handler of SIGTERM while it starts, and has no option against that: a SIGTERM would
                # then end the process at once, in the middle of the start, instead of being deferred.
                with _attribute_set(ray._private.utils, "set_sigterm_handler", lambda _: None):
                    _start(ray) if address is None else _join(ray, address)
        yield ray


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM until the block has ended; a second signal takes effect at once.

    An exception that passes through Ray while it starts or ends leaves processes behind. Ray also installs a handler of
    SIGTERM: after the block both signals have the handlers that they had before it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[signal.Signals] = []
    kinds = (signal.SIGINT, signal.SIGTERM)
    handlers = {kind: handler for kind in kinds if (handler := signal.getsignal(kind)) is not None}

    def defer(number: int, _: object) -> None:
        if received:
            signal.signal(number, handlers[signal.Signals(number)])
            signal.raise_signal(number)
        received.append(signal.Signals(number))

    for kind in handlers:
        signal.signal(kind, defer)
    try:
        yield
    finally:
        for kind, handler in handlers.items():
            signal.signal(kind, handler)
    if received:
        signal.raise_signal(received[0])


@contextmanager
def loopback_only() -> Iterator[None]:
    """Make clusters that are started in the block listen on the loopback address alone, out of reach of other machines.

    Ray does so where clusters of several machines are not supported, on Windows and macOS; on Linux it has no option
    for it, so that the constant that it derives from the platform is changed.
    """
    from ray._private import ray_constants

    with _attribute_set(ray_constants, "ENABLE_RAY_CLUSTER", False):
        yield


def _import_ray() -> Any:
    """Return the module `ray`, or raise an error that says how to install it."""
    try:
        import ray
        import ray._private.utils
    except ImportError as error:
        raise ConfigurationError("the executor ray needs Ray; pip install 'repeat-xai[ray]'") from error
    return ray


def _join(ray: Any, address: str) -> None:
    """Connect to an existing cluster; the port is tried first, because Ray itself would try for minutes."""
    try:
        if address != "auto":
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigurationError(
            f"no Ray cluster at {address} ({reason(error)}); see `ray start --help`, "
            "and set RAY_AUTH_MODE=token for one that asks for a token"
        ) from error


def _start(ray: Any) -> None:
    """Start a cluster on this machine."""
    with loopback_only():
        ray.init(
            address="local",
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            object_store_memory=OBJECT_STORE_BYTES,
        )


def _shut_down(ray: Any) -> None:
    """Disconnect, and stop the cluster if it was started here; do nothing if it was never reached."""
    if ray.is_initialized():
        with interrupts_deferred():
            ray.shutdown()


@contextmanager
def _attribute_set(module: Any, name: str, value: object) -> Iterator[None]:
    """Give a variable of a module another value for the time of the block."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
