"""Reading the body of an HTTP request within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_BODY_SECONDS = 600.0
"""Time that a whole body may take to arrive."""
MAX_SILENT_SECONDS = 30.0
"""Time that may pass without anything arriving."""


@final
class RefusedError(Exception):
    """A request that is answered with an HTTP status and a message, and is not passed on to the app."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def body_chunks(request: Request, *, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield a body as it arrives. Refuse a body that is too large, stops arriving or ends early.

    A body that announces more than `max_bytes` bytes is refused before any of it is read.
    """
    request.state.was_read = True
    size = request.headers.get("content-length", "")
    if size.isdecimal() and int(size[:20]) > max_bytes:
        raise _too_large(max_bytes)
    total, end = 0, asyncio.get_running_loop().time() + MAX_BODY_SECONDS
    more = True
    while more:
        seconds_left = end - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(request.receive(), min(MAX_SILENT_SECONDS, max(seconds_left, 0)))
        except TimeoutError:
            raise RefusedError(408, "it did not arrive in time; send it again") from None
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection ended before all of it had arrived")
        chunk, more = message.get("body", b""), message.get("more_body", False)
        total += len(chunk)
        if total > max_bytes:
            raise _too_large(max_bytes)
        yield chunk


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return a whole body, read within the same limits."""
    return b"".join([chunk async for chunk in body_chunks(request, max_bytes=max_bytes)])


def was_read(request: Request) -> bool:
    """Tell whether reading the request's body has begun."""
    return getattr(request.state, "was_read", False)


def _too_large(max_bytes: int) -> RefusedError:
    limit = f"{max_bytes // 2**20} MB" if max_bytes >= 2**20 else f"{max_bytes // 2**10} KB"
    return RefusedError(413, f"this is more than the {limit} accepted here")
