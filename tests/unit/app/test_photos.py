"""Reading of uploaded files, of which some are photos."""

import os
import threading
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import typer
from skimage import data

import repeat_xai as rx
from repeat_xai.app import photos
from repeat_xai.app.photos import MAX_PHOTO_BYTES, read_photo, sample_photo
from repeat_xai.cli import demo
from repeat_xai.data.image_files import SAMPLES, sample_path
from repeat_xai.errors import ImageError


@pytest.fixture
def encoder():
    return rx.load_encoder("torchvision:squeezenet1_1", weights="random", size=64, device="cpu")


def test_a_chosen_photo_equals_the_image_loaded_from_its_path(tmp_path, encoder):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()).save(path)
    image, expected = read_photo(path).image_for(encoder), rx.load_image(path, encoder)
    assert image.pixels.equal(expected.pixels)
    assert image.photo.digest == expected.photo.digest
    assert (image.photo.name, read_photo(path).snippet_path) == ("cat.png", "cat.png")


def test_a_command_finds_the_samples(encoder):
    for name in SAMPLES:
        sample = sample_photo(name)
        assert rx.load_image(sample.snippet_path, encoder).photo.digest == sample.photo.digest
        assert sample.name == name


def test_the_demo_explains_the_samples_of_the_app(monkeypatch, tmp_path):
    explained = []
    monkeypatch.setattr(demo, "explain_all", lambda paths, *_, **__: explained.extend(paths) or 0)
    with pytest.raises(typer.Exit):
        demo.demo(out=tmp_path)
    assert explained == [sample_path(name) for name in SAMPLES] == [sample_photo(name).path for name in SAMPLES]


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
        file.truncate(MAX_PHOTO_BYTES + 1)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (text, "not an image that can be read"),
        (program, "not an image that can be read"),  # PostScript, which Pillow would have run
        (empty, "the file is empty"),
        (cut_short, "the image is damaged or cut short"),
        (many_pixels, "10000×5000 pixels"),
        (bomb, "accepted here|million pixels"),
        (many_bytes, "32 MB"),
        (lambda path: None, "did not arrive"),
    ],
)
def test_a_file_that_is_no_photo_is_refused_in_a_line_without_its_path(tmp_path, write, message):
    path = tmp_path / "cat.jpg"
    write(path)
    with pytest.raises(ImageError, match=message) as refused:
        read_photo(path)
    assert str(refused.value).startswith("cat.jpg: ")
    assert str(tmp_path) not in str(refused.value)
    assert "\n" not in str(refused.value)


def resident():
    """Return the megabytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_the_memory_of_a_large_photo_is_returned_to_the_system(tmp_path):
    path = tmp_path / "large.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    PIL.Image.fromarray(noise).resize((7200, 5400)).save(path)
    photos._return_memory()
    before = resident()
    reader = threading.Thread(target=read_photo, args=(path,))  # the server reads photos on a thread, too
    reader.start()
    reader.join()
    assert resident() - before < 40  # the decoded photo alone takes 117
