"""Tests that the app hands out no file of its server, on the loopback address and on one that others can reach."""

from contextlib import closing

import PIL.Image
import pytest
from hostile.attack import attempts, open_page, upload
from hostile.verdicts import Verdict
from serving import SMALL, serving
from skimage import data

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

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
            if SECRET in answer:
                leaked.append(name)
            judge("file reads", Verdict("traceback" if SECRET in answer else "refused"))
        copies = [file for file in app.files() if SECRET.encode() in file.read_bytes()]
    assert tried >= 100
    assert leaked == []
    assert copies == []
