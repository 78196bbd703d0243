"""The app on a port of this machine, for this machine alone unless told otherwise."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from repeat_xai.encoders import export
from repeat_xai.errors import ConfigurationError, reason
from repeat_xai.experiment.setting import Network
from repeat_xai.serve.desk import Desk
from repeat_xai.serve.layout import asset
from repeat_xai.serve.notes import routing
from repeat_xai.serve.photo import MOST_BYTES
from repeat_xai.serve.sessions import Sessions
from repeat_xai.serve.shelf import KEPT, Shelf

LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'"
"""Browsers are told to ask this server and nobody else, whatever a library would have them do."""
FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def serve(
    encoders: Sequence[str] = ("efficientnet_lite0",),
    *,
    size: int | None = None,
    device: str = "auto",
    host: str = "127.0.0.1",
    port: int = 7860,
    browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Serve the app until interrupted, and say where; encoders are named as NAME or NAME=WEIGHTS."""
    if find_spec("gradio") is None:
        raise ConfigurationError("the app needs Gradio: pip install 'repeat-xai[serve]'")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before it is imported; nobody is told of anything
    networks = [Network.of(name) for name in dict.fromkeys(encoders)]
    shelf = Shelf(device=device, kept=len(networks) + KEPT)
    with _bound(host, port) as listener:
        for network in networks:
            shelf.take(replace(network, size=size))
        with TemporaryDirectory(prefix="repeat-xai-", ignore_cleanup_errors=True) as folder, routing():
            os.environ["GRADIO_TEMP_DIR"] = str(Path(folder) / "uploads")
            sessions = Sessions(Path(folder))
            desk = Desk(sessions=sessions, shelf=shelf, encoders=networks, local=host in LOOPBACK)
            address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
            try:
                with sessions.ageing():
                    _run(
                        desk, listener, size=size, host=host, ready=lambda: _ready(address, browser=browser, told=told)
                    )
            finally:
                export.abandon()


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket on that port."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except (OSError, UnicodeError) as error:  # of a name that cannot be one, Python says so in its own way
        why = error.strerror if isinstance(error, OSError) else reason(error)
        raise ConfigurationError(f"cannot serve on {host} ({why}); choose another --host") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            taken = f"cannot serve on {host}:{port} ({error.strerror}); choose another --port"
            raise ConfigurationError(taken) from error
        yield listener


@contextmanager
def _ending() -> Iterator[None]:
    """What ends the server ends no more than that: uvicorn sends itself the signal again when it is done."""
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda *_: None) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


def _ready(address: str, *, browser: bool, told: Callable[[str], None]) -> None:
    told(f"Serving at {address} (Ctrl-C ends it)")
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _run(desk: Desk, listener: socket.socket, *, size: int | None, host: str, ready: Callable[[], None]) -> None:
    """The page, its results and the rules for both, until interrupted."""
    import gradio as gr
    import uvicorn
    from fastapi import FastAPI
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.staticfiles import StaticFiles

    from repeat_xai.serve.events import app

    outer = FastAPI(openapi_url=None)
    desk.sessions.results.mkdir(parents=True)
    outer.mount("/results", StaticFiles(directory=desk.sessions.results))
    gr.mount_gradio_app(
        outer,
        app(desk, size=size),
        path="/",
        theme=_theme(),
        css=asset("style.css"),
        max_file_size=MOST_BYTES,
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        show_error=False,
    )
    if host in LOOPBACK:
        outer.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
    outer.add_middleware(Policy)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            ready()  # now that it listens

    server = Server(uvicorn.Config(outer, log_level="warning", timeout_graceful_shutdown=1))
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)  # pages left open are no error
    with _ending():
        server.run(sockets=[listener])


@final
class Policy:
    """Every answer with the policy on it."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        async def signed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", POLICY.encode())]
            await send(message)

        await self.app(scope, receive, signed)


def _theme() -> Any:
    """The colours of the pages of results, and no fonts from elsewhere."""
    import gradio as gr

    blue = gr.themes.Color(
        *("#eef6fb", "#d8ebf7", "#b3d9ef", "#7cc4f0", "#3fa1da", "#0072b2", "#005f96", "#004f7d", "#003f64", "#00304d"),
        "#002036",
    )
    theme = gr.themes.Base(primary_hue=blue, neutral_hue="slate", radius_size="sm", font=FONT, font_mono=MONO)
    return theme.set(
        body_background_fill="#ffffff",
        body_background_fill_dark="#15171a",
        body_text_color="#1d2126",
        body_text_color_dark="#e6e8ea",
        body_text_color_subdued="#565d66",
        body_text_color_subdued_dark="#a3abb4",
        block_label_text_color="#565d66",
        block_label_text_color_dark="#a3abb4",
        block_title_text_color="#565d66",
        block_title_text_color_dark="#a3abb4",
        link_text_color="#005f96",
        link_text_color_dark="#7cc4f0",
        link_text_color_visited="#005f96",
        link_text_color_visited_dark="#7cc4f0",
        link_text_color_hover="#004f7d",
        link_text_color_hover_dark="#b3d9ef",
        color_accent="#005f96",
        block_background_fill_dark="#1f2226",
        background_fill_primary_dark="#15171a",
        background_fill_secondary_dark="#1f2226",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_300",
        button_primary_background_fill_hover_dark="*primary_200",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#15171a",
    )
