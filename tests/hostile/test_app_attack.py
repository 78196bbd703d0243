"""Tests that the app hands out no file of its server, on the loopback address and on one that others can reach."""

import os
import socket
from contextlib import closing
from pathlib import Path

import httpx
import PIL.Image
import pytest
from apps import handler_in, running
from hostile.attack import SESSION, attempts, leaks, open_page, upload
from hostile.verdicts import Verdict
from serving import SMALL, serving
from skimage import data

from repeat_xai.app.photos import sample_photo
from repeat_xai.data.image_files import SAMPLES

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

from repeat_xai.app.events import build_page
from repeat_xai.app.server import unguarded_app

pytestmark = pytest.mark.slow
SECRET = "the-secret-of-this-machine"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_the_app_hands_out_no_file_of_its_server(host, tmp_path, judge):
    secret, photo = tmp_path / "secret.txt", tmp_path / "cat.jpg"
    secret.write_text(SECRET)
    PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(photo)
    with serving(tmp_path, *SMALL, "--host", host) as app, closing(open_page(app.address)) as client:
        assert "gradio" in client.get("/").text
        upload(client, photo)
        leaked, tried = [], 0
        for name, answer in attempts(client, secret):
            tried += 1
            if leaks(answer, secret):
                leaked.append(name)
            judge("file reads", Verdict("traceback" if leaks(answer, secret) else "refused"))
        copies = [file for file in app.files() if SECRET.encode() in file.read_bytes()]
    assert tried >= 100
    assert leaked == []
    assert copies == []


def unguarded(tmp_path, secret, change):
    """Attack the app without its gate, after `change` has been made to Gradio's page; return all answers that leak."""
    handler = handler_in(tmp_path / "home")
    photo = sample_photo(SAMPLES[0])

    def app():
        blocks = build_page(handler, size=64)
        unguarded = unguarded_app(handler, blocks)
        change(blocks)
        return unguarded

    def open_session():
        """Open the attacker's page again where the attack has closed it: no job is started without a photo."""
        handler.sessions.join(SESSION, "the attacker")
        handler.sessions.get(SESSION).photo = photo

    with (
        closing(socket.create_server(("127.0.0.1", 0))) as listener,
        running(app, listener) as address,
        httpx.Client(base_url=address, timeout=20, headers={"Connection": "close"}) as client,
    ):
        answers = [answer for _, answer in attempts(client, secret, before_each=open_session)]
        copied = [file for file in Path(os.environ["GRADIO_TEMP_DIR"]).rglob(secret.name) if file.is_file()]
    return [answer for answer in answers if leaks(answer, secret)], copied


@pytest.fixture
def secret(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    path = tmp_path / "secret.txt"
    path.write_text(SECRET)
    return path


def test_gradios_own_check_alone_refuses_every_attempt(tmp_path, secret):
    assert unguarded(tmp_path, secret, lambda blocks: None) == ([], [])


def test_the_attack_sees_copies_that_are_made_where_gradios_check_is_taken_out(tmp_path, secret):
    """Gradio still serves no copy, because all its folders are blocked; that it makes one is a leak all the same."""
    leaked, copied = unguarded(tmp_path, secret, lambda blocks: setattr(blocks, "has_launched", False))
    assert len(leaked) > 10
    assert not any(SECRET in answer for answer in leaked)
    assert copied


def test_the_attack_reads_the_file_where_every_check_is_taken_out(tmp_path, secret):
    def take_out(blocks):
        blocks.has_launched, blocks.blocked_paths = False, []

    leaked, copied = unguarded(tmp_path, secret, take_out)
    assert sum(SECRET in answer for answer in leaked) > 10
    assert copied
