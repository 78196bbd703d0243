"""The app on a port of this machine, for this machine alone unless told otherwise."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from repeat_xai.app.app_folder import home
from repeat_xai.app.encoder_cache import KEPT, Shelf
from repeat_xai.app.layout import asset
from repeat_xai.app.requests import Desk
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.theme import theme
from repeat_xai.app.uploads import Uploads
from repeat_xai.app.visitors import LOOPBACK, Hosts, Visitors
from repeat_xai.app.warning_routing import routing
from repeat_xai.encoders import onnx_export
from repeat_xai.errors import ConfigurationError, reason
from repeat_xai.experiments.settings import Network

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

EVERY = ("", "0.0.0.0", "::")
"""Hosts that stand for every address of this machine."""


def serve(
    encoders: Sequence[str] = ("efficientnet_lite0",),
    *,
    size: int | None = None,
    device: str = "auto",
    host: str = "127.0.0.1",
    port: int = 7860,
    allow_hosts: Sequence[str] = (),
    token: bool = True,
    browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Serve the app until interrupted, and say where; encoders are named as NAME or NAME=WEIGHTS.

    Other machines reach it if `host` is not a loopback address. Then the first address that a browser opens must hold
    a token, unless `token` is False. `allow_hosts`: further names, as NAME or NAME:PORT, that the app is reached by.
    """
    if find_spec("gradio") is None:
        raise ConfigurationError("the app needs Gradio: pip install 'repeat-xai[serve]'")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before it is imported; nobody is told of anything
    networks = [Network.of(name) for name in dict.fromkeys(encoders)]
    shelf = Shelf(device=device, kept=len(networks) + KEPT)
    shared = host not in LOOPBACK
    with _bound(host, port) as listener:
        for network in networks:
            shelf.load(replace(network, size=size))
        with home() as folder, routing():
            os.environ["GRADIO_TEMP_DIR"] = str(folder / "gradio")
            desk = Desk(
                sessions=Sessions(folder),
                uploads=Uploads(folder / "uploads"),
                shelf=shelf,
                encoders=networks,
                local=not shared,
            )
            own_port = listener.getsockname()[1]
            hosts = Hosts(port=own_port, shared=shared, told=tuple(allow_hosts))
            visitors = Visitors(port=own_port, token=secrets.token_urlsafe(24) if shared and token else None)
            addresses = [visitors.address(name) for name in (_names() if host in EVERY else (host,))]

            def ready() -> None:
                told(f"Serving at {' and '.join(addresses)} (Ctrl-C ends it)")
                if browser:
                    threading.Thread(target=webbrowser.open, args=addresses[:1], daemon=True).start()

            try:
                with desk.sessions.ageing(desk.uploads.forget_old):
                    _run(guarded(desk, hosts, visitors, size=size), listener, ready=ready)
            finally:
                onnx_export.abandon()


def guarded(desk: Desk, hosts: Hosts, visitors: Visitors, *, size: int | None) -> ASGIApp:
    """Return the app behind its gate: the page that Gradio draws, and the results."""
    from repeat_xai.app.call_checks import Calls
    from repeat_xai.app.events import app
    from repeat_xai.app.gate import Gate

    blocks = app(desk, size=size)
    return Gate(
        unguarded(desk, blocks),
        hosts=hosts,
        visitors=visitors,
        sessions=desk.sessions,
        uploads=desk.uploads,
        calls=Calls(blocks),
    )


def unguarded(desk: Desk, blocks: Any) -> FastAPI:
    """Return the app without its gate; Gradio still refuses to read files for whoever calls it."""
    import gradio as gr
    from fastapi import FastAPI
    from starlette.staticfiles import StaticFiles

    outer = FastAPI(openapi_url=None)
    desk.sessions.results.mkdir(parents=True, exist_ok=True)
    outer.mount("/results", StaticFiles(directory=desk.sessions.results))
    gr.mount_gradio_app(
        outer,
        blocks,
        path="/",
        theme=theme(),
        css=asset("style.css"),
        max_file_size=0,  # photos do not come by Gradio
        blocked_paths=["/"],
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        show_error=False,
        enable_monitoring=False,
    )
    # Gradio looks whether a file was uploaded by a user only in apps that were launched; one that is mounted in
    # another never counts as launched, and would copy any file that a call names to where it can be downloaded.
    blocks.has_launched = True
    return outer


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


def _names() -> tuple[str, ...]:
    """Return names that this machine is reached by: by itself, and by others."""
    return ("127.0.0.1", socket.gethostname())


def _run(app: ASGIApp, listener: socket.socket, *, ready: Callable[[], None]) -> None:
    """Serve until interrupted; `ready` is called once the server listens."""
    import uvicorn

    from repeat_xai.app.connection import Connection

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            ready()

    config = uvicorn.Config(app, http=Connection, log_level="warning", timeout_graceful_shutdown=1, server_header=False)
    server = Server(config)
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)  # pages left open are no error
    with _ending():
        server.run(sockets=[listener])
