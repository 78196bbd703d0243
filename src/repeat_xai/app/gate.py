"""The gate in front of the app: it decides which requests reach Gradio, and refuses all others in one line.

The page needs little of Gradio's server: itself, its scripts, a heartbeat and two addresses to call functions at. Only
these are let through, and a call only after its values were checked. A browser is known by a signed cookie that it gets
with the page: a session, its uploads and its results belong to one browser, and no other can name them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse

from repeat_xai.app.call_checks import MOST_BYTES as MOST_BYTES_OF_A_CALL
from repeat_xai.app.call_checks import Calls
from repeat_xai.app.photos import MOST_BYTES
from repeat_xai.app.request_body import RefusedError, body, chunks, was_read
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads, file_name
from repeat_xai.app.visitors import Hosts, Visitors
from repeat_xai.errors import RepeatError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    # The browser is told to ask this server and nobody else, whatever a library would have it do.
    "Content-Security-Policy": "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the first address may hold a token
    "X-Content-Type-Options": "nosniff",
}
FILES = re.compile(r"/(?:assets|static)/[\w@./-]+|/theme\.css|/favicon\.ico|/manifest\.json")
"""Scripts, styles and pictures of Gradio's page."""
HEARTBEAT = re.compile(r"/gradio_api/heartbeat/([\w-]+)")
RESULTS = re.compile(r"/results/([\w-]+)/.+")
NEWS = "/gradio_api/queue/data"
CALLS = ("/gradio_api/run/predict", "/gradio_api/queue/join")
PHOTO = "/photo"
log = logging.getLogger("repeat_xai.app")


@final
class Gate:
    """Everything a client sends passes here first."""

    def __init__(
        self, app: ASGIApp, *, hosts: Hosts, visitors: Visitors, sessions: Sessions, uploads: Uploads, calls: Calls
    ) -> None:
        self.app, self.hosts, self.visitors = app, hosts, visitors
        self.sessions, self.uploads, self.calls = sessions, uploads, calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope, receive), send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, request: Request, send: Send) -> None:
        """Answer the request, or let it through; headers are added either way."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: ASGIApp
        try:
            answer = await self._admitted(request)
        except RefusedError as refused:
            await _drain(request)
            answer = PlainTextResponse(f"{refused}\n", refused.status, {"Connection": "close"})
        await answer(request.scope, request.receive, with_headers)

    async def _admitted(self, request: Request) -> ASGIApp:
        """What answers this request: the app itself if it is let through."""
        self.hosts.expect(request)
        path = request.scope["path"]
        if request.method == "GET" and path == "/":
            return self._page(request)
        visitor = self.visitors.of(request)
        if visitor is None:
            raise RefusedError(403, "this browser is not known here; load the page first")
        if request.method == "POST" and path == PHOTO:
            return PlainTextResponse(await self._upload(request, visitor))
        if request.method == "POST" and path in CALLS:
            return await self._call(request, visitor)
        if request.method == "GET" and self._may_see(request, visitor, path):
            return self.app
        raise RefusedError(404, "there is nothing at this address")

    def _page(self, request: Request) -> ASGIApp:
        """The page, with a cookie for a browser that has none; a token is taken out of the address."""
        visitor = self.visitors.of(request)
        if visitor is None and not self.visitors.has_token(request):
            raise RefusedError(403, "this app needs its token: open the address that it printed when it was started")
        cookie = None if visitor else self.visitors.cookie()
        answer: ASGIApp = RedirectResponse("./", 303) if "token" in request.query_params else self.app

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            async def with_cookie(message: Message) -> None:
                if cookie and message["type"] == "http.response.start":
                    MutableHeaders(scope=message)["Set-Cookie"] = cookie
                await send(message)

            await answer({**scope, "query_string": b""}, receive, with_cookie)

        return page

    def _may_see(self, request: Request, visitor: str, path: str) -> bool:
        if FILES.fullmatch(path) and ".." not in path:
            return True
        if found := RESULTS.fullmatch(path):
            return self.sessions.shows(found[1], visitor)
        if found := HEARTBEAT.fullmatch(path):
            self._expect_own(found[1], visitor)
            return True
        if path == NEWS:
            self._expect_own(request.query_params.get("session_hash", ""), visitor)
            return True
        return False

    def _expect_own(self, session: str, visitor: str) -> None:
        """Refuse a session of another browser; a session that is new belongs to whoever names it first."""
        try:
            self.sessions.join(session, visitor)
        except RepeatError as error:
            raise RefusedError(403, str(error)) from error

    async def _call(self, request: Request, visitor: str) -> ASGIApp:
        """Let a call through once it was checked, written anew from what was checked."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "a call is JSON; its content type must be application/json")
        session, content = self.calls.checked(await body(request, most=MOST_BYTES_OF_A_CALL))
        self._expect_own(session, visitor)

        async def checked() -> Message:
            nonlocal content
            sent, content = content, b""
            return {"type": "http.request", "body": sent} if sent else await request.receive()

        headers = MutableHeaders(scope=request.scope)
        headers["Content-Length"] = str(len(content))

        async def call(scope: Scope, _: Receive, send: Send) -> None:
            await self.app(scope, checked, send)

        return call

    async def _upload(self, request: Request, visitor: str) -> str:
        """Receive a photo, and return the key under which this browser can have it explained."""
        name = file_name(request.query_params.get("name", ""))
        if request.headers.get("content-type") != "application/octet-stream":
            raise RefusedError(415, "a photo is sent as it is; its content type must be application/octet-stream")
        arriving: AsyncIterator[bytes] = chunks(request, most=MOST_BYTES)
        try:
            return await self.uploads.receive(visitor, name, arriving)
        except RefusedError as refused:
            log.warning("repeat-xai: the upload of %s was dropped: %s", name, refused)
            raise


async def _drain(request: Request) -> None:
    """Read a short body that nobody has read: a connection that ends with unread data may lose the answer to it."""
    if not was_read(request):
        with suppress(RefusedError):
            await body(request, most=MOST_BYTES_OF_A_CALL)
