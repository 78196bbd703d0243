"""A request's body, read within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_SECONDS = 600.0
"""Time that a whole body may take to arrive."""
MOST_SILENCE = 30.0
"""Time that may pass without anything arriving."""


@final
class RefusedError(Exception):
    """A request that is answered with this status and these words, and goes no further."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


async def chunks(request: Request, *, most: int) -> AsyncIterator[bytes]:
    """Yield a body as it arrives; refuse one that is too large, is not sent on, or ends early.

    A body that announces a size above `most` bytes is refused before any of it is read.
    """
    request.state.was_read = True
    size = request.headers.get("content-length", "")
    if size.isdecimal() and int(size[:20]) > most:
        raise _too_large(most)
    total, end = 0, asyncio.get_running_loop().time() + MOST_SECONDS
    more = True
    while more:
        left = end - asyncio.get_running_loop().time()
        try:
            message = await asyncio.wait_for(request.receive(), min(MOST_SILENCE, max(left, 0)))
        except TimeoutError:
            raise RefusedError(408, "it did not arrive in time; send it again") from None
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection ended before all of it had arrived")
        part, more = message.get("body", b""), message.get("more_body", False)
        total += len(part)
        if total > most:
            raise _too_large(most)
        yield part


async def body(request: Request, *, most: int) -> bytes:
    """Read a whole body within the same limits."""
    return b"".join([part async for part in chunks(request, most=most)])


def was_read(request: Request) -> bool:
    """Tell whether anybody has begun to read the request's body."""
    return getattr(request.state, "was_read", False)


def _too_large(most: int) -> RefusedError:
    limit = f"{most // 2**20} MB" if most >= 2**20 else f"{most // 2**10} KB"
    return RefusedError(413, f"this is more than the {limit} taken here")
