"""The app in this process: the same server, gate and page as the command's, without encoders."""

import asyncio
import socket
import threading
from contextlib import closing, contextmanager

import httpx
import uvicorn

from repeat_xai.app.connection import Connection
from repeat_xai.app.encoder_cache import Shelf
from repeat_xai.app.requests import Desk
from repeat_xai.app.server import guarded
from repeat_xai.app.sessions import Sessions
from repeat_xai.app.uploads import Uploads
from repeat_xai.app.visitors import Hosts, Visitors
from repeat_xai.experiments.settings import Network

ENCODER = "torchvision:squeezenet1_1=random"
PAGE = "page12345"
"""A session, as a page names its own."""
FORM = (ENCODER, "relax", "", "", "fast", 20, 2, 0, 2, 64, 0)
"""What the page sends when Explain is pressed."""


def desk_in(folder, *, local=True):
    return Desk(
        sessions=Sessions(folder),
        uploads=Uploads(folder / "uploads"),
        shelf=Shelf(device="cpu"),
        encoders=[Network.of(ENCODER)],
        local=local,
    )


@contextmanager
def running(made, listener):
    """Serve an app on a socket until the block ends; it is made where it runs, since Gradio asks for an event loop."""
    servers = []

    async def serve():
        config = uvicorn.Config(made(), http=Connection, log_level="critical", timeout_graceful_shutdown=1)
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
def app_of(desk, *, shared=False, token=None, told=()):
    """Serve the whole app behind its gate, and say where."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        hosts, visitors = Hosts(port=port, shared=shared, told=told), Visitors(port=port, token=token)
        with running(lambda: guarded(desk, hosts, visitors, size=64), listener) as address:
            yield address


def browser(address):
    """A client that has loaded the page."""
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
