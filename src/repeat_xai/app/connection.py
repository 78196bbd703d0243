"""A connection that ends when nothing is asked on it."""

from __future__ import annotations

from asyncio import Transport
from typing import final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from repeat_xai.app.request_body import MOST_SILENCE


@final
class Connection(H11Protocol):
    """uvicorn's connection, closed if a request's head does not arrive in time; uvicorn itself would wait for ever."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(MOST_SILENCE, self._look, None)

    def _look(self, before: RequestResponseCycle | None) -> None:
        """Close the connection if no request has come since the last look, and none is being answered."""
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is before:
            self.transport.close()
        else:
            self.loop.call_later(MOST_SILENCE, self._look, self.cycle)
