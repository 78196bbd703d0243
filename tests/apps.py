"""The app in the process of the tests, with the server, gate and page of the command, but without loaded encoders."""

import asyncio
import socket
import threading
from contextlib import closing, contextmanager

import httpx
import uvicorn

from repeat_xai.app.allowed_hosts import AllowedHosts
from repeat_xai.app.browsers import Browsers
from repeat_xai.app.encoder_cache import EncoderCache
from repeat_xai.app.http_server import TimedConnection
from repeat_xai.app.request_handler import RequestHandler
from repeat_xai.app.server import guarded_app
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.experiments.settings import EncoderSpec

ENCODER = "torchvision:squeezenet1_1=random"
PAGE = "page12345"
"""Key of a session, as a page names its own."""
FORM = (ENCODER, "relax", "", "", "fast", 20, 2, 0, 2, 64, 0)
"""Values that the page sends when Explain is pressed."""


def handler_in(folder, *, local=True):
    return RequestHandler(
        sessions=Sessions(folder),
        uploads=Uploads(folder / "uploads"),
        encoder_cache=EncoderCache(device="cpu"),
        encoder_specs=[EncoderSpec.of(ENCODER)],
        local=local,
    )


@contextmanager
def running(make_app, listener):
    """Serve an app on a socket until the block ends. The app is made on the server's thread: Gradio needs its loop."""
    servers = []

    async def serve():
        config = uvicorn.Config(make_app(), http=TimedConnection, log_level="critical", timeout_graceful_shutdown=1)
        servers.append(uvicorn.Server(config))
        await servers[0].serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        for server in servers:
            server.should_exit = True
        thread.join()


@contextmanager
def app_of(handler, *, shared=False, token=None, further=()):
    """Serve the whole app behind its gate, and yield its address."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        hosts, browsers = AllowedHosts(port=port, shared=shared, further=further), Browsers(port=port, token=token)
        with running(lambda: guarded_app(handler, hosts, browsers, size=64), listener) as address:
            yield address


def browser(address):
    """Return a client that has loaded the page."""
    client = httpx.Client(base_url=address, timeout=20, headers={"Connection": "close"})
    assert client.get("/").status_code == 200
    return client


def body(number, values, *, event=None, session=PAGE):
    return {"data": list(values), "event_data": event, "fn_index": number, "session_hash": session, "trigger_id": 1}


def call(client, number, values, **details):
    return client.post("/gradio_api/run/predict", json=body(number, values, **details))


def send(client, content, name="cat.png", **headers):
    """Upload a photo as the page's script does."""
    kind = {"Content-Type": "application/octet-stream"} | headers
    return client.post("/photo", params={"name": name}, content=content, headers=kind)
