"""Tests that explain, screen and evaluate look for images in folders alike, and say what they leave out."""

import csv
import json
from pathlib import Path

import PIL.Image
import pytest
from command import SMALL, run_here, without_image_warnings
from skimage import data

from repeat_xai.data.known_datasets import DATASETS

FAST = ["--masks", "12", "--repeats", "2"]
NETWORK = ["--encoder", "torchvision:squeezenet1_1=random", "--device", "cpu", "--protocol", "encoder", "--size", 64]
LEFT_OUT = "left out 2 .gif, 1 .txt"


def save_photo(path: Path, row: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(data.chelsea()[row : row + 100, :120]).save(path)


@pytest.fixture
def photos(tmp_path):
    """A folder with three photos on three levels, two of them with the same name, and with other files."""
    folder = tmp_path / "photos"
    for row, name in enumerate(("cat.png", "a/cat.PNG", "a/b/dog.jpg", ".hidden/no.png", "a/.no.png")):
        save_photo(folder / name, 10 * row)
    for name in ("one.gif", "a/two.GIF", "a/b/notes.txt", ".hidden.txt"):
        (folder / name).write_bytes(b"other")
    return folder


@pytest.mark.slow
def test_explain_descends_into_sub_folders_and_says_what_it_leaves_out(photos, tmp_path, monkeypatch, capsys):
    arguments = ("explain", photos, "--out", tmp_path / "out", "--json", *FAST, *SMALL)
    status, output = run_here(monkeypatch, capsys, *arguments)
    assert status == 0
    assert without_image_warnings(output.err).splitlines() == [f"repeat-xai: {photos}: {LEFT_OUT}"]
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [Path(line["image"]).relative_to(photos).as_posix() for line in lines] == [
        "a/b/dog.jpg",
        "a/cat.PNG",
        "cat.png",
    ]
    assert [Path(line["panel"]).name for line in lines] == ["dog.png", "cat.png", "cat-2.png"]


@pytest.mark.slow
def test_screen_descends_into_sub_folders_and_says_what_it_leaves_out(photos, tmp_path, monkeypatch, capsys):
    reference = photos / "known"
    save_photo(reference / "known.png", 60)
    (reference / "known.bin").write_bytes(b"other")
    arguments = ("screen", photos, "--known", reference, "--out", photos / "out", *FAST, *SMALL)
    status, output = run_here(monkeypatch, capsys, *arguments)
    assert status == 0
    notes = [f"repeat-xai: {photos}: {LEFT_OUT}", f"repeat-xai: {reference}: left out 1 .bin"]
    assert output.err.splitlines()[:2] == notes
    with (photos / "out/screen.csv").open(newline="") as file:
        ranked = {Path(row["image"]).relative_to(photos).as_posix() for row in csv.DictReader(file)}
    assert ranked == {"cat.png", "a/cat.PNG", "a/b/dog.jpg"}


def test_evaluate_says_what_it_leaves_out(photos, tmp_path, monkeypatch, capsys):
    arguments = ("evaluate", "--dataset", photos, "--out", tmp_path / "out", "--methods", "relax", *FAST, *NETWORK)
    status, output = run_here(monkeypatch, capsys, *arguments)
    assert status == 0
    assert f"repeat-xai: {photos}: {LEFT_OUT}" in output.err.splitlines()
    assert "3 of 3 rows" in output.err


@pytest.mark.slow
def test_results_inside_the_searched_folder_are_not_explained(photos, monkeypatch, capsys):
    """Results of this run and of an earlier run into another folder are no photos, nor are panels beside photos."""
    for out in (photos / "results", photos / "results", photos / "more/results", photos / "a"):
        source = photos / "cat.png" if out.name == "a" else photos
        status, output = run_here(monkeypatch, capsys, "explain", source, "--out", out, "--json", *FAST, *SMALL)
        assert status == 0
        names = [Path(json.loads(line)["image"]).name for line in output.out.splitlines()]
        assert names == (["cat.png"] if out.name == "a" else ["dog.jpg", "cat.PNG", "cat.png"])
    out = photos.parent / "out"
    _, output = run_here(monkeypatch, capsys, "explain", photos, "--out", out, "--json", *FAST, *SMALL)
    assert len(output.out.splitlines()) == 3
    assert "7 repeat-xai pictures" in output.err


def test_an_unknown_dataset_is_wrong_usage_and_the_nearest_name_is_given(tmp_path, monkeypatch, capsys):
    arguments = ("evaluate", "--dataset", "eurosta", "--out", tmp_path / "out", *FAST, *NETWORK)
    status, output = run_here(monkeypatch, capsys, *arguments)
    assert status == 2
    assert "did you mean eurosat?" in output.err


def test_list_datasets_shows_every_name_with_its_description(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "datasets")
    assert status == 0
    lines = output.out.splitlines()
    assert [line.split()[0] for line in lines] == [*DATASETS, "cifar10+FILE", "FOLDER"]
    assert "EuroSAT: satellite images" in output.out
