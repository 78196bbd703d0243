"""Tests of the lines that warn of images whose maps say little: the code hardly moves, or the photo is flat."""

import json

import PIL.Image
import pytest
from command import SMALL, run_here, warned_images, without_image_warnings
from skimage import data
from small_work import network

FAST = ["--estimator", "exact", "--masks", "8", "--repeats", "2"]
MOVEMENT, FLAT = "very little", "nearly a single colour"


@pytest.fixture
def flat(tmp_path):
    """A grey photo whose right half is a little brighter, by less than anybody sees."""
    path = tmp_path / "grey.png"
    photo = PIL.Image.new("RGB", (80, 60), (128, 128, 128))
    photo.paste((129, 129, 129), (40, 0, 80, 60))
    photo.save(path)
    return path


@pytest.fixture
def rocket(tmp_path):
    path = tmp_path / "rocket.png"
    PIL.Image.fromarray(data.rocket()).save(path)
    return path


def explain(monkeypatch, capsys, out, *arguments):
    status, output = run_here(monkeypatch, capsys, "explain", *arguments, "--out", out, *FAST)
    assert status == 0
    assert without_image_warnings(output.err) == ""
    return output


@pytest.mark.slow
def test_an_encoder_whose_code_hardly_moves_is_warned_of_once_for_each_image(
    photo, rocket, tmp_path, monkeypatch, capsys
):
    output = explain(monkeypatch, capsys, tmp_path / "out", photo, rocket, *SMALL)
    assert warned_images(output.err, MOVEMENT) == [str(photo), str(rocket)]
    assert warned_images(output.err, FLAT) == []
    assert MOVEMENT not in output.out


def test_a_flat_photo_is_warned_of_by_its_colour_alone(flat, tmp_path, monkeypatch, capsys):
    output = explain(monkeypatch, capsys, tmp_path / "out", flat, *SMALL)
    assert warned_images(output.err, FLAT) == [str(flat)]
    assert warned_images(output.err, MOVEMENT) == []


@pytest.mark.slow
def test_nothing_is_said_of_images_that_move_the_code(photo, rocket, tmp_path, monkeypatch, capsys):
    output = explain(monkeypatch, capsys, tmp_path / "out", photo, rocket, "--encoder", network(tmp_path).name)
    assert output.err == ""


@pytest.mark.slow
def test_a_warning_is_not_repeated_for_an_image_that_is_done(photo, flat, tmp_path, monkeypatch, capsys):
    first = explain(monkeypatch, capsys, tmp_path / "out", photo, flat, *SMALL)
    assert len(first.err.splitlines()) == 2
    again = explain(monkeypatch, capsys, tmp_path / "out", photo, flat, *SMALL)
    assert again.err == ""
    assert again.out.count("already done") == 2


def test_the_movement_is_the_one_that_is_recorded(photo, tmp_path, monkeypatch, capsys):
    output = explain(monkeypatch, capsys, tmp_path / "out", photo, *SMALL)
    movement = json.loads((tmp_path / "out" / "cat.json").read_text())["ran"]["code_movement"]
    assert f"by {100 * movement:.2g}\u00a0% on average; that is very little" in output.err
    assert 0 < movement < 0.02
