"""The app hands out no file of its server, on loopback and opened to others."""

from contextlib import closing

import PIL.Image
import pytest
from hostile.attack import attempts, opened, uploaded
from hostile.verdicts import Verdict
from serving import SMALL, serving
from skimage import data

pytest.importorskip("gradio", reason="there is no Gradio: install the extra [serve]")

SECRET = "the-secret-of-this-machine"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_no_file_of_the_server_is_handed_out(host, tmp_path, judge):
    secret, photo = tmp_path / "secret.txt", tmp_path / "cat.jpg"
    secret.write_text(SECRET)
    PIL.Image.fromarray(data.chelsea()[::4, ::4]).save(photo)
    with serving(tmp_path, *SMALL, "--host", host) as app, closing(opened(app.address)) as client:
        assert "gradio" in client.get("/").text
        uploaded(client, photo)
        leaked, tried = [], 0
        for name, said in attempts(client, secret):
            tried += 1
            if SECRET in said:
                leaked.append(name)
            judge("file reads", Verdict("traceback" if SECRET in said else "refused"))
        copies = [file for file in app.files() if SECRET.encode() in file.read_bytes()]
    assert tried >= 100
    assert leaked == []
    assert copies == []
