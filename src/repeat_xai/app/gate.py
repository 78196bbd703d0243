"""The gate in front of the app, which decides which requests reach Gradio and refuses all others in one line.

The page needs little of Gradio's server: the page itself, its scripts, a heartbeat and two addresses at which its
functions are called. Only these are let through, and a call only after its values were checked. A browser is known by a
signed cookie that it gets with the page: a session, its uploads and its results belong to one browser, and no other
browser can name them.
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

from repeat_xai.app.allowed_hosts import AllowedHosts
from repeat_xai.app.browsers import Browsers
from repeat_xai.app.call_checks import MAX_CALL_BYTES, CallChecker
from repeat_xai.app.photos import MAX_PHOTO_BYTES
from repeat_xai.app.request_body import RefusedError, body_chunks, read_body, was_read
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads, safe_file_name
from repeat_xai.errors import RepeatError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    # The browser may ask this server and nobody else, whatever Gradio's scripts would have it load.
    "Content-Security-Policy": "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the first address may hold the token
    "X-Content-Type-Options": "nosniff",
}
STATIC_FILES = re.compile(r"/(?:assets|static)/[\w@./-]+|/theme\.css|/favicon\.ico|/manifest\.json")
"""Scripts, styles and pictures of Gradio's page."""
HEARTBEAT = re.compile(r"/gradio_api/heartbeat/([\w-]+)")
RESULTS = re.compile(r"/results/([\w-]+)/.+")
EVENT_STREAM = "/gradio_api/queue/data"
"""Address from which a page receives what its running functions yield."""
CALL_PATHS = ("/gradio_api/run/predict", "/gradio_api/queue/join")
UPLOAD_PATH = "/photo"
LOG = logging.getLogger("repeat_xai.app")


@final
class Gate:
    """An ASGI app that checks every request before Gradio's app may answer it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: AllowedHosts,
        browsers: Browsers,
        sessions: Sessions,
        uploads: Uploads,
        calls: CallChecker,
    ) -> None:
        self.app, self.hosts, self.browsers = app, hosts, browsers
        self.sessions, self.uploads, self.calls = sessions, uploads, calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(Request(scope, receive), send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, request: Request, send: Send) -> None:
        """Answer the request or let it through. The security headers are added either way."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: ASGIApp
        try:
            answer = await self._route(request)
        except RefusedError as refused:
            await _drain(request)
            answer = PlainTextResponse(f"{refused}\n", refused.status, {"Connection": "close"})
        await answer(request.scope, request.receive, send_with_headers)

    async def _route(self, request: Request) -> ASGIApp:
        """Return what answers this request: Gradio's app, if the request may pass."""
        self.hosts.check(request)
        path = request.scope["path"]
        if request.method == "GET" and path == "/":
            return self._page(request)
        browser = self.browsers.identify(request)
        if browser is None:
            raise RefusedError(403, "this browser is not known here; load the page first")
        if request.method == "POST" and path == UPLOAD_PATH:
            return PlainTextResponse(await self._upload(request, browser))
        if request.method == "POST" and path in CALL_PATHS:
            return await self._call(request, browser)
        if request.method == "GET" and self._may_read(request, browser, path):
            return self.app
        raise RefusedError(404, "there is nothing at this address")

    def _page(self, request: Request) -> ASGIApp:
        """Return the page, with a cookie for a browser that has none. A token is removed from the address."""
        browser = self.browsers.identify(request)
        if browser is None and not self.browsers.has_token(request):
            raise RefusedError(403, "this app needs its token: open the address that it printed when it was started")
        cookie = None if browser else self.browsers.new_cookie()
        answer: ASGIApp = RedirectResponse("./", 303) if "token" in request.query_params else self.app

        async def page(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_with_cookie(message: Message) -> None:
                if cookie and message["type"] == "http.response.start":
                    MutableHeaders(scope=message)["Set-Cookie"] = cookie
                await send(message)

            await answer({**scope, "query_string": b""}, receive, send_with_cookie)

        return page

    def _may_read(self, request: Request, browser: str, path: str) -> bool:
        if STATIC_FILES.fullmatch(path) and ".." not in path:
            return True
        if match := RESULTS.fullmatch(path):
            return self.sessions.owns_results(browser, match[1])
        if match := HEARTBEAT.fullmatch(path):
            self._join_session(match[1], browser)
            return True
        if path == EVENT_STREAM:
            self._join_session(request.query_params.get("session_hash", ""), browser)
            return True
        return False

    def _join_session(self, session: str, browser: str) -> None:
        """Refuse a session of another browser. A new session belongs to the browser that names it first."""
        try:
            self.sessions.join(session, browser)
        except RepeatError as error:
            raise RefusedError(403, str(error)) from error

    async def _call(self, request: Request, browser: str) -> ASGIApp:
        """Return Gradio's app for a call that was checked, with the body serialised anew from what was checked."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RefusedError(415, "a call is JSON; its content type must be application/json")
        session, content = self.calls.check(await read_body(request, max_bytes=MAX_CALL_BYTES))
        self._join_session(session, browser)

        async def receive_checked() -> Message:
            nonlocal content
            checked, content = content, b""
            return {"type": "http.request", "body": checked} if checked else await request.receive()

        headers = MutableHeaders(scope=request.scope)
        headers["Content-Length"] = str(len(content))

        async def call(scope: Scope, _: Receive, send: Send) -> None:
            await self.app(scope, receive_checked, send)

        return call

    async def _upload(self, request: Request, browser: str) -> str:
        """Receive a photo and return the key by which this browser can have it explained."""
        name = safe_file_name(request.query_params.get("name", ""))
        if request.headers.get("content-type") != "application/octet-stream":
            raise RefusedError(415, "a photo is sent as raw bytes; its content type must be application/octet-stream")
        chunks: AsyncIterator[bytes] = body_chunks(request, max_bytes=MAX_PHOTO_BYTES)
        try:
            return await self.uploads.receive(browser, name, chunks)
        except RefusedError as refused:
            LOG.warning("repeat-xai: the upload of %s was dropped: %s", name, refused)
            raise


async def _drain(request: Request) -> None:
    """Read a short body that was not read yet: a connection that ends with unread data may lose the answer to it."""
    if not was_read(request):
        with suppress(RefusedError):
            await read_body(request, max_bytes=MAX_CALL_BYTES)
