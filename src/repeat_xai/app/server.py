"""Serving of the app on a port of this machine, by default for this machine alone."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from repeat_xai.app.allowed_hosts import LOOPBACK_HOSTS, AllowedHosts
from repeat_xai.app.app_folder import temporary_app_folder
from repeat_xai.app.browsers import Browsers
from repeat_xai.app.encoder_cache import EXTRA_ENCODERS, EncoderCache
from repeat_xai.app.layout import read_asset
from repeat_xai.app.request_handler import RequestHandler
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.theme import theme
from repeat_xai.app.uploads import Uploads
from repeat_xai.app.warning_routing import routed_warnings
from repeat_xai.encoders import onnx_export
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.settings import EncoderSpec

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

WILDCARD_HOSTS = ("", "0.0.0.0", "::")
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
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the app until it is interrupted, and announce its address.

    The encoders are named as NAME or NAME=WEIGHTS, and are loaded before the app is served. Other machines can reach
    the app if `host` is not a loopback address. The first address that a browser opens must then hold a token, unless
    `token` is False. `allow_hosts` are further names, as NAME or NAME:PORT, under which browsers may reach the app.
    A `port` of 0 chooses a free one.
    """
    if find_spec("gradio") is None:
        raise ConfigurationError("the app needs Gradio: pip install 'repeat-xai[serve]'")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when Gradio is imported; it must not report its use
    from repeat_xai.app.http_server import listening_socket, run_until_interrupted

    encoder_specs = [EncoderSpec.of(name) for name in dict.fromkeys(encoders)]
    encoder_cache = EncoderCache(device=device, capacity=len(encoder_specs) + EXTRA_ENCODERS)
    shared = host not in LOOPBACK_HOSTS
    with listening_socket(host, port) as listener:
        for spec in encoder_specs:
            encoder_cache.preload(replace(spec, size=size))
        with temporary_app_folder() as folder, routed_warnings():
            os.environ["GRADIO_TEMP_DIR"] = str(folder / "gradio")
            handler = RequestHandler(
                sessions=Sessions(folder),
                uploads=Uploads(folder / "uploads"),
                encoder_cache=encoder_cache,
                encoder_specs=encoder_specs,
                local=not shared,
            )
            own_port = listener.getsockname()[1]
            hosts = AllowedHosts(port=own_port, shared=shared, further=tuple(allow_hosts))
            browsers = Browsers(port=own_port, token=secrets.token_urlsafe(24) if shared and token else None)
            names = ("127.0.0.1", socket.gethostname()) if host in WILDCARD_HOSTS else (host,)
            addresses = [browsers.first_address(name) for name in names]

            def on_ready() -> None:
                announce(f"Serving at {' and '.join(addresses)} (Ctrl-C ends it)")
                if browser:
                    threading.Thread(target=webbrowser.open, args=addresses[:1], daemon=True).start()

            try:
                with handler.sessions.regular_cleanup(handler.uploads.remove_old):
                    app = guarded_app(handler, hosts, browsers, size=size)
                    run_until_interrupted(app, listener, on_ready=on_ready, on_end=handler.sessions.cancel_jobs)
            finally:
                onnx_export.abandon()


def guarded_app(handler: RequestHandler, hosts: AllowedHosts, browsers: Browsers, *, size: int | None) -> ASGIApp:
    """Return the app behind its gate."""
    from repeat_xai.app.call_checks import CallChecker
    from repeat_xai.app.events import build_page
    from repeat_xai.app.gate import Gate

    blocks = build_page(handler, size=size)
    return Gate(
        unguarded_app(handler, blocks),
        hosts=hosts,
        browsers=browsers,
        sessions=handler.sessions,
        uploads=handler.uploads,
        calls=CallChecker(blocks),
    )


def unguarded_app(handler: RequestHandler, blocks: Any) -> FastAPI:
    """Return the app without its gate: Gradio's page and the results.

    The gate keeps calls that name files away from Gradio, and the last step here makes Gradio refuse them as well.
    """
    import gradio as gr
    from fastapi import FastAPI
    from starlette.staticfiles import StaticFiles

    app = FastAPI(openapi_url=None)
    handler.sessions.result_folder.mkdir(parents=True, exist_ok=True)
    app.mount("/results", StaticFiles(directory=handler.sessions.result_folder))
    gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        theme=theme(),
        css=read_asset("style.css"),
        max_file_size=0,  # photos are not uploaded through Gradio
        blocked_paths=["/"],
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
        pwa=False,
        show_error=False,
        enable_monitoring=False,
    )
    # Gradio checks whether a file was uploaded by a user only in apps that were launched. An app that is mounted in
    # another one never counts as launched, and would copy any file that a call names to where it can be downloaded.
    blocks.has_launched = True
    return app
