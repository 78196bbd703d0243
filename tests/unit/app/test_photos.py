"""Files that are given: photos, and what is none."""

import os
import threading
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import typer
from skimage import data

import repeat_xai as rx
from repeat_xai.app import photos as photo
from repeat_xai.app.photos import MOST_BYTES, given, sample
from repeat_xai.cli import demo
from repeat_xai.data.image_files import SAMPLES, sample_path
from repeat_xai.errors import ImageError


@pytest.fixture
def encoder():
    return rx.load_encoder("torchvision:squeezenet1_1", weights="random", size=64, device="cpu")


def test_a_photo_is_the_same_as_by_its_path(tmp_path, encoder):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()).save(path)
    found, own = given(path).image(encoder), rx.load_image(path, encoder)
    assert found.pixels.equal(own.pixels)
    assert found.photo.digest == own.photo.digest
    assert (found.photo.name, given(path).called) == ("cat.png", "cat.png")


def test_samples_are_found_by_a_command(encoder):
    for name in SAMPLES:
        found = sample(name)
        assert rx.load_image(found.called, encoder).photo.digest == found.photo.digest
        assert found.name == name


def test_the_demo_explains_the_samples_of_the_app(monkeypatch, tmp_path):
    explained = []
    monkeypatch.setattr(demo, "explain_all", lambda photos, *_, **__: explained.extend(photos) or 0)
    with pytest.raises(typer.Exit):
        demo.demo(out=tmp_path)
    assert explained == [sample_path(name) for name in SAMPLES] == [sample(name).path for name in SAMPLES]


def text(path):
    path.write_text("no photo")


def program(path):
    PIL.Image.fromarray(data.chelsea()).save(path, format="EPS")


def empty(path):
    path.touch()


def cut_short(path):
    PIL.Image.fromarray(data.chelsea()).save(path, format="PNG")
    path.write_bytes(path.read_bytes()[:5000])


def many_pixels(path):
    PIL.Image.new("1", (10_000, 5_000)).save(path, format="PNG")


def bomb(path):
    PIL.Image.new("1", (20_000, 20_000)).save(path, format="PNG")


def many_bytes(path):
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (text, "not an image that can be read"),
        (program, "not an image that can be read"),  # PostScript, which Pillow would have run
        (empty, "the file is empty"),
        (cut_short, "the image is damaged or cut short"),
        (many_pixels, "10000×5000 pixels are more than the 40 million taken here"),
        (bomb, "taken here; make it smaller first|more than 89 million pixels"),
        (many_bytes, "32 MB is more than the 32 MB taken here"),
        (lambda path: None, "did not arrive"),
    ],
)
def test_what_is_no_photo_is_refused_in_a_line_without_its_place(tmp_path, made, words):
    path = tmp_path / "cat.jpg"
    made(path)
    with pytest.raises(ImageError, match=words) as refused:
        given(path)
    assert str(refused.value).startswith("cat.jpg: ")
    assert str(tmp_path) not in str(refused.value)
    assert "\n" not in str(refused.value)


def resident():
    """Megabytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_after_a_large_photo_memory_is_as_before(tmp_path):
    path = tmp_path / "large.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    PIL.Image.fromarray(noise).resize((7200, 5400)).save(path)
    photo._give_back_memory()
    before = resident()
    reader = threading.Thread(target=given, args=(path,))  # as the server does
    reader.start()
    reader.join()
    assert resident() - before < 40  # the decoded photo alone takes 117
