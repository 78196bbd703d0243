"""The gate: which requests reach the app, and which are refused before they do."""

import asyncio
import socket
import time
from contextlib import closing

import httpx
import PIL.Image
import pytest
from apps import FORM, PAGE, app_of, body, browser, call, handler_in, running, send
from serving import until
from skimage import data
from starlette.requests import Request

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

from repeat_xai.app import http_server, request_body, sessions, uploads
from repeat_xai.app.allowed_hosts import AllowedHosts
from repeat_xai.app.events import build_page
from repeat_xai.app.request_body import RefusedError
from repeat_xai.app.server import unguarded_app
from repeat_xai.errors import ConfigurationError

UPLOAD, SAMPLE, SHOW_USED, START, RUN, CLOSE = 0, 1, 2, 3, 4, 6
TOKEN = "token-of-the-test"


@pytest.fixture(scope="module")
def handler(tmp_path_factory):
    return handler_in(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def address(handler):
    with app_of(handler) as url:
        yield url


@pytest.fixture(scope="module")
def client(address):
    """Return a browser whose page stays open during all tests."""
    with closing(browser(address)) as opened:
        yield opened


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()[::8, ::8]).save(path)
    return path.read_bytes()


@pytest.mark.slow
def test_a_photo_is_uploaded_and_taken_by_its_own_page(client, handler, photo):
    key = send(client, photo).text
    answer = call(client, UPLOAD, [], event={"upload": key}).json()["data"][0]
    assert "cat.png" in answer
    assert "<img" in answer
    assert [file for file in handler.uploads.folder.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("letter", ["é", "猫", "😀"])
def test_a_photo_may_have_a_long_name_in_any_script(client, photo, letter):
    key = send(client, photo, name=f"{letter * 300}.png").text
    assert f"{letter}.png" in call(client, UPLOAD, [], event={"upload": key}).json()["data"][0]


def test_another_browser_can_use_neither_upload_nor_page_nor_results(address, client, handler, photo):
    key = send(client, photo).text
    assert call(client, SAMPLE, [], event={"number": 0}).status_code == 200
    results = handler.sessions.get(PAGE).result_folder
    (results / "a").mkdir(parents=True, exist_ok=True)
    (results / "a" / "page.html").write_text("mine")
    shown = f"/results/{results.name}/a/page.html"
    assert client.get(shown).text == "mine"
    with closing(browser(address)) as other:
        assert other.get(shown).status_code == 404
        for path in (f"/gradio_api/heartbeat/{PAGE}", f"/gradio_api/queue/data?session_hash={PAGE}"):
            assert other.get(path).status_code == 403
        assert call(other, START, FORM).status_code == 403
        answer = call(other, UPLOAD, [], event={"upload": key}, session="another-page").json()["data"][0]
        assert "did not arrive" in answer
    assert "cat.png" in call(client, UPLOAD, [], event={"upload": key}).json()["data"][0]


@pytest.mark.parametrize(
    "cookie",
    ["", "visitor.seal", "visitor.", ".", "é.é", "a" * 4000],
    ids=["none", "forged", "unsealed", "dot", "odd", "long"],
)
def test_without_a_valid_cookie_only_the_page_is_answered(address, cookie):
    port = address.rpartition(":")[2]
    headers = {"Cookie": f"repeat-xai-{port}={cookie}".encode()} if cookie else {}
    with httpx.Client(base_url=address, headers=headers) as stranger:
        for answer in (
            call(stranger, SHOW_USED, ["relax", "", "fast"]),
            send(stranger, b"x"),
            stranger.get("/theme.css"),
        ):
            assert answer.status_code == 403
            assert answer.text == "this browser is not known here; load the page first\n"
        assert stranger.get("/").status_code == 200


OTHER_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "localhost:1",
    "127.0.0.1",
    "localhost.evil.example:{port}",
    "a@localhost:{port}",
    "",
)


@pytest.mark.parametrize("name", ["Host", "Origin"])
@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_other_hosts_and_origins_are_refused(address, client, name, host):
    value = host.format(port=address.rpartition(":")[2])
    headers = {name: f"http://{value}" if name == "Origin" else value}
    for answer in (client.get("/", headers=headers), client.post("/photo?name=a", content=b"x", headers=headers)):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
        assert len(answer.text.splitlines()) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_own_hosts_and_origins_are_accepted(address, client, host):
    own = f"{host}:{address.rpartition(':')[2]}"
    answer = client.post(
        "/gradio_api/run/predict", json=body(SHOW_USED, ["relax", "", "fast"]), headers={"Origin": f"http://{own}"}
    )
    assert answer.status_code == 200
    assert client.get("/", headers={"Host": own}).status_code == 200


@pytest.mark.parametrize("scheme", ["chrome-extension", "file", "ws", ""])
def test_origins_that_are_no_web_pages_are_refused(address, client, scheme):
    origin = f"{scheme}://{address.removeprefix('http://')}"
    assert client.get("/", headers={"Origin": origin}).status_code == 403


def request_reaching(address, *, host):
    return Request({"type": "http", "server": (address, 7860), "headers": [(b"host", host.encode())]})


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_names_are_accepted_only_over_the_loopback_interface(name):
    hosts = AllowedHosts(port=7860, shared=True)
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        hosts.check(request_reaching(address, host=f"{name}:7860"))
    for address in ("192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7"):
        with pytest.raises(RefusedError, match="not known as"):
            hosts.check(request_reaching(address, host=f"{name}:7860"))


@pytest.mark.slow
def test_an_app_open_to_others_asks_a_browser_for_the_token_once(tmp_path):
    handler = handler_in(tmp_path, local=False)
    further = ("photos.example", "proxy.example:8443")
    with (
        app_of(handler, shared=True, token=TOKEN, further=further) as address,
        httpx.Client(base_url=address, headers={"Connection": "close"}) as stranger,
    ):
        for query in ("", "?token=", "?token=other", "?token=é"):
            assert stranger.get(f"/{query}").status_code == 403
        entered = stranger.get(f"/?token={TOKEN}")
        assert (entered.status_code, entered.headers["location"]) == (303, "./")
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert "SameSite=Lax" in entered.headers["set-cookie"]
        assert stranger.get("/").status_code == 200
        port = address.rpartition(":")[2]
        for host in (
            "photos.example",
            f"photos.example:{port}",
            "proxy.example:8443",
            f"{socket.gethostname()}:{port}",
        ):
            assert stranger.get("/", headers={"Host": host}).status_code == 200
        for host in ("proxy.example", "photos.example:1", "evil.example", f"10.0.0.1:{port}"):
            assert stranger.get("/", headers={"Host": host}).status_code == 403
        refused = call(stranger, START, ("torchvision:alexnet", *FORM[1:]))
        assert (refused.status_code, refused.text) == (422, "encoder cannot hold this value\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/gradio_api/file=/etc/passwd"),
        ("GET", "/gradio_api/proxy=http://127.0.0.1/"),
        ("POST", "/gradio_api/upload"),
        ("POST", "/gradio_api/call/begin"),
        ("POST", "/gradio_api/api/predict"),
        ("POST", "/gradio_api/component_server"),
        ("POST", "/gradio_api/cancel"),
        ("GET", "/gradio_api/info"),
        ("GET", "/config"),
        ("GET", "/monitoring"),
        ("GET", "/docs"),
        ("GET", "/static/../../../etc/passwd"),
        ("GET", "/static/%2e%2e/%2e%2e/x"),
        ("GET", "/results/../lock"),
        ("GET", "/results/a/../../../lock"),
        ("DELETE", "/"),
        ("OPTIONS", "/gradio_api/run/predict"),
        ("PUT", "/photo"),
    ],
)
def test_nothing_else_of_gradios_server_is_reachable(client, method, path):
    answer = client.request(method, httpx.URL(client.base_url, raw_path=path.encode()))
    assert (answer.status_code, answer.text) == (404, "there is nothing at this address\n")


def test_no_browser_can_call_the_function_that_closes_a_page(client):
    assert "names no function" in call(client, CLOSE, []).text


def test_even_without_the_gate_gradio_reads_no_file_for_a_call(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    handler = handler_in(tmp_path / "home")
    handler.sessions.join(PAGE, "a browser")
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        running(lambda: unguarded_app(handler, build_page(handler, size=64)), listener) as url,
        httpx.Client(base_url=url) as client,
    ):
        file = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
        answer = call(client, START, [file, *FORM[1:]])
        assert answer.status_code == 500
        assert "secret.txt" not in answer.text
        assert client.get(f"/gradio_api/file={secret}").status_code == 403
    assert list((tmp_path / "home").rglob("secret.txt")) == []


def raw(address, text, *, then=b"", pause=0.0):
    """Write to a new connection, and return what comes back and the seconds until the connection ends."""
    host, port = address.removeprefix("http://").split(":")
    started = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(text.encode())
        time.sleep(pause)
        connection.sendall(then)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer.decode(), time.monotonic() - started


def upload_request(client, address, *, length, extra=""):
    (cookie,) = (f"{name}={value}" for name, value in client.cookies.items())
    lines = ("POST /photo?name=cat.png HTTP/1.1", f"Host: {address.removeprefix('http://')}", f"Cookie: {cookie}")
    return "\r\n".join((*lines, "Content-Type: application/octet-stream", f"Content-Length: {length}{extra}", "", ""))


def test_an_upload_that_is_too_large_is_refused_before_it_is_sent(client, address, handler):
    answer, seconds = raw(address, upload_request(client, address, length=10**12))
    assert answer.startswith("HTTP/1.1 413 ")
    assert "this is more than the 32 MB accepted here" in answer
    assert seconds < 2


def test_an_upload_of_no_known_length_is_cut_at_the_limit(client, handler, monkeypatch):
    monkeypatch.setattr("repeat_xai.app.gate.MAX_PHOTO_BYTES", 1000)

    def parts():
        for _ in range(100):
            yield b"x" * 500

    assert send(client, parts()).status_code == 413
    assert list(handler.uploads.folder.iterdir()) == []


def test_an_upload_that_stops_is_dropped_and_logged_in_a_line(client, address, handler, monkeypatch, caplog):
    monkeypatch.setattr(request_body, "MAX_SILENT_SECONDS", 0.3)
    answer, seconds = raw(address, upload_request(client, address, length=1000) + "half")
    assert answer.startswith("HTTP/1.1 408 ")
    assert seconds < 5
    assert [record.getMessage() for record in caplog.records if record.name == "repeat_xai.app"] == [
        "repeat-xai: the upload of cat.png was dropped: it did not arrive in time; send it again"
    ]
    assert until(lambda: list(handler.uploads.folder.iterdir()) == [])


def test_an_upload_whose_sender_disconnects_is_dropped_and_logged_in_a_line(client, address, handler, caplog):
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall((upload_request(client, address, length=1000) + "half").encode())
        assert until(lambda: list(handler.uploads.folder.iterdir()))
    assert until(lambda: list(handler.uploads.folder.iterdir()) == [])
    assert until(lambda: "ended before all of it had arrived" in caplog.text)


@pytest.mark.parametrize(
    "start", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\nX"], ids=["silent", "a word", "a header"]
)
def test_a_connection_without_a_complete_request_is_closed(address, monkeypatch, start):
    monkeypatch.setattr(http_server, "MAX_SILENT_SECONDS", 0.3)
    assert raw(address, start)[1] < 5


@pytest.mark.slow
def test_a_connection_stays_open_while_its_request_is_answered(address, client, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_SILENT_SECONDS", 0.1)
    with client.stream("GET", f"/gradio_api/heartbeat/{PAGE}", timeout=5) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "data: ALIVE"
        time.sleep(1)
        assert not stream.is_closed
        assert next(lines) == ""


def test_a_call_whose_body_stops_arriving_is_refused(client, address, monkeypatch):
    monkeypatch.setattr(request_body, "MAX_BODY_SECONDS", 0.3)
    request = upload_request(client, address, length=100).replace("/photo?name=cat.png", "/gradio_api/run/predict")
    answer, seconds = raw(address, request.replace("octet-stream", "json") + "{")
    assert answer.startswith("HTTP/1.1 408 ")
    assert seconds < 5


def test_only_a_few_uploads_wait_and_old_ones_are_removed(client, address, handler, photo, monkeypatch):
    keys = [send(client, photo).text for _ in range(uploads.MAX_WAITING_UPLOADS + 2)]
    assert sorted(file.name for file in handler.uploads.folder.iterdir()) == sorted(keys[2:])
    monkeypatch.setattr(uploads, "MAX_WAITING_SECONDS", -1.0)
    handler.uploads.remove_old()
    assert list(handler.uploads.folder.iterdir()) == []
    monkeypatch.setattr(uploads, "MAX_CONCURRENT_UPLOADS", 0)
    assert send(client, photo).status_code == 503


def test_a_browser_with_many_uploads_under_way_leaves_room_for_others(tmp_path):
    async def endless():
        yield b"a part"
        await asyncio.Event().wait()

    async def whole():
        yield b"all"

    async def upload_from_two_browsers():
        waiting = uploads.Uploads(tmp_path)
        sending = [
            asyncio.create_task(waiting.receive("first", "cat.png", endless()))
            for _ in range(uploads.MAX_CONCURRENT_UPLOADS_PER_BROWSER)
        ]
        await asyncio.sleep(0)
        with pytest.raises(RefusedError, match="too many photos"):
            await waiting.receive("first", "cat.png", whole())
        assert await waiting.receive("second", "cat.png", whole())
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        assert await waiting.receive("first", "cat.png", whole())

    asyncio.run(upload_from_two_browsers())


def test_a_server_that_cannot_write_refuses_uploads(client, handler, monkeypatch, photo, tmp_path):
    taken = tmp_path / "file"
    taken.touch()
    monkeypatch.setattr(handler.uploads, "folder", taken)
    refused = send(client, photo)
    assert (refused.status_code, refused.text) == (507, "nothing can be written on the server (Not a directory)\n")


def test_other_protocols_are_closed(address):
    with closing(browser(address)) as client:
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "eA==",
            "Sec-WebSocket-Version": "13",
        }
        assert client.get("/gradio_api/heartbeat", headers=headers).status_code in (403, 404)


def test_too_many_open_pages_are_refused(client, handler, monkeypatch):
    monkeypatch.setattr("repeat_xai.app.sessions.MAX_SESSIONS", 0)
    answer = call(client, SHOW_USED, ["relax", "", "fast"], session="yet-another-page")
    assert (answer.status_code, answer.text) == (403, "too many pages are open here; close one, or try again later\n")


def test_a_browser_with_many_open_pages_leaves_room_for_others(tmp_path):
    opened = sessions.Sessions(tmp_path)
    for number in range(sessions.MAX_SESSIONS_PER_BROWSER):
        opened.join(f"page-{number}", "first")
    with pytest.raises(ConfigurationError, match="too many pages"):
        opened.join("one-more", "first")
    opened.join("page-0", "first")
    opened.join("one-more", "second")
