"""The HTTP server: a listening socket, connections that time out, and a server that runs until it is interrupted."""

from __future__ import annotations

import logging
import signal
import socket
from asyncio import Transport
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from repeat_xai.app.request_body import MAX_SILENT_SECONDS
from repeat_xai.errors import ConfigurationError, reason

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SHUTDOWN_SECONDS = 1
"""Time that requests under way have to finish when the server ends."""


@final
class TimedConnection(H11Protocol):
    """A connection that is closed when no request arrives in time; uvicorn alone would wait for ever."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(MAX_SILENT_SECONDS, self._close_if_idle, None)

    def _close_if_idle(self, cycle_before: RequestResponseCycle | None) -> None:
        """Close the connection if no request has come since the last check, and none is being answered."""
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is cycle_before:
            self.transport.close()
        else:
            self.loop.call_later(MAX_SILENT_SECONDS, self._close_if_idle, self.cycle)


@contextmanager
def listening_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that is bound to the host and port, and close it when the block ends."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:  # a name with an empty label fails to encode before it is looked up
        why = error.strerror if isinstance(error, OSError) else reason(error)
        raise ConfigurationError(f"cannot serve on {host} ({why}); choose another host") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            message = f"cannot serve on {host}:{port} ({error.strerror}); choose another port"
            raise ConfigurationError(message) from error
        yield listener


def run_until_interrupted(
    app: ASGIApp, listener: socket.socket, *, on_ready: Callable[[], None], on_end: Callable[[], None]
) -> None:
    """Serve the app until SIGINT or SIGTERM arrives.

    `on_ready` is called once the server listens, and `on_end` when its last connection is closed. The server then waits
    for its threads, so `on_end` must end what they wait for.
    """

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            on_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets=sockets)
            on_end()

    config = uvicorn.Config(
        app,
        http=TimedConnection,
        log_level="warning",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        server_header=False,
    )
    server = Server(config)
    # Uvicorn logs an error for each page that is still open when the server ends, which is not a fault.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
    with _ignoring_signals():
        server.run(sockets=[listener])


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    """Ignore the signal that uvicorn sends to its own process again after it has shut down because of it."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    handlers_before = [signal.signal(kind, lambda *_: None) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, handlers_before, strict=True):
            signal.signal(kind, handler)
