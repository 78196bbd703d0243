"""Screening a folder: the images an encoder does not know come first."""

import csv
import json
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import SMALL, run_here
from skimage import data

import repeat_xai as rx
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.screening import Ranked, Score, ranked, write

FEW = ["--masks", 40, "--repeats", 2]


@pytest.fixture
def folder(tmp_path):
    """Six crops of one photo."""
    found = tmp_path / "photos"
    found.mkdir()
    for i in range(6):
        PIL.Image.fromarray(data.chelsea()[20 * i : 20 * i + 160, 20 * i : 20 * i + 200]).save(found / f"crop{i}.png")
    return found


def screen(folder, monkeypatch, capsys, *options):
    out = folder.parent / "out"
    return (*run_here(monkeypatch, capsys, "screen", folder, "--out", out, *SMALL, *FEW, *options), out)


def rows(out):
    with (out / "screen.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_images_are_ranked_by_the_mean_of_their_uncertainty(folder, monkeypatch, capsys):
    status, said, out = screen(folder, monkeypatch, capsys)
    assert (status, said.err) == (0, "")
    table = rows(out)
    scores = [float(row["uncertainty"]) for row in table]
    assert scores == sorted(scores, reverse=True)
    assert [row["rank"] for row in table] == list("123456")
    for row, score in zip(table, scores, strict=True):
        maps = rx.Explanation.load(row["panel"].removesuffix("png") + "npz")
        assert maps.uncertainty.double().mean().item() == pytest.approx(score, rel=1e-6)
        assert row["below"] == ""
    made = json.loads((out / "screen.json").read_text())
    assert made["images"] == 6
    assert made["statement"] in said.out
    assert sum(made["mixture"]["weights"]) == pytest.approx(1)
    with PIL.Image.open(out / "screen.png") as picture:
        assert np.asarray(picture).std() > 10


def test_it_goes_on_where_it_stopped_and_takes_a_reference(folder, monkeypatch, capsys):
    screen(folder, monkeypatch, capsys)
    known = folder.parent / "known"
    known.mkdir()
    PIL.Image.fromarray(data.coffee()).save(known / "coffee.png")
    PIL.Image.fromarray(data.rocket()).save(known / "rocket.jpg")
    status, said, out = screen(folder, monkeypatch, capsys, "--reference", known, "--aggregate", "top")
    assert status == 0
    assert said.out.count("already done") == 6
    assert {row["below"] for row in rows(out)} <= {"0.000000", "0.500000", "1.000000"}


@pytest.mark.parametrize("reference", [True, False])
def test_the_table_is_parquet_too_with_numbers_as_they_are(folder, monkeypatch, capsys, reference):
    """Read back, it is the CSV before its numbers were cut."""
    status, _, out = screen(folder, monkeypatch, capsys, *(["--reference", folder / "crop0.png"] if reference else []))
    assert status == 0
    table = pq.read_table(out / "screen.parquet")
    text, number = pa.string(), pa.float64()
    assert table.column_names == list(rows(out)[0])
    assert table.schema.types == [pa.int64(), text, number, number, number, text]
    for plain, row in zip(table.to_pylist(), rows(out), strict=True):
        assert (str(plain["rank"]), plain["image"], plain["panel"]) == (row["rank"], row["image"], row["panel"])
        maps = rx.Explanation.load(row["panel"].removesuffix("png") + "npz")
        assert plain["uncertainty"] == maps.uncertainty.double().mean().item()
        assert f"{plain['uncertainty']:.9g}" == row["uncertainty"]
        assert (plain["unknown"], row["unknown"]) == (None, "")  # six images of two photos are no two kinds
        assert (plain["below"] is None) == (row["below"] == "") == (not reference)
        assert plain["below"] is None or f"{plain['below']:.6f}" == row["below"]


def test_only_two_kinds_give_an_image_a_probability(tmp_path):
    def at(*values):
        return ranked([Score(Path("a.png"), ResultFiles.of(tmp_path, "a"), value) for value in values], [], seed=0)

    apart = at(*np.linspace(0.10, 0.11, 8), *np.linspace(0.20, 0.21, 8))
    assert [round(value, 6) for value in apart.unknown] == [1.0] * 8 + [0.0] * 8
    assert at(*np.linspace(0.10, 0.11, 8), 0.2).unknown == [None] * 9
    assert at(0.1, 0.2).unknown == [None] * 2


def test_odd_names_are_written_as_far_as_they_can_be(tmp_path, encoder, image):
    files = ResultFiles.of(tmp_path, "odd")
    rx.Relax(masks=4)(encoder, image, seed=0).save(files.maps)
    write(Ranked([Score(Path("bad\udcff, and\nmore.png"), files, 0.1)], [1 / 3], [None], None), tmp_path, {})
    (plain,) = pq.read_table(tmp_path / "screen.parquet").to_pylist()
    assert (plain["unknown"], rows(tmp_path)[0]["unknown"]) == (1 / 3, "0.333333")
    assert plain["image"] == rows(tmp_path)[0]["image"] == "bad?, and\nmore.png"


def test_few_images_and_bad_ones_are_told(folder, monkeypatch, capsys):
    for i in range(1, 6):
        (folder / f"crop{i}.png").unlink()
    (folder / "bad.png").write_bytes(b"nothing")
    status, said, out = screen(folder, monkeypatch, capsys)
    assert status == 1
    assert "bad.png" in said.err
    assert "too few images" in said.out
    assert [row["unknown"] for row in rows(out)] == [""]
    assert pq.read_table(out / "screen.parquet")["unknown"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--aggregate", "sum"], 2, "unknown aggregate 'sum'"),
        (["--reference", "nowhere"], 1, "nowhere: no such file"),
    ],
)
def test_wrong_requests(folder, monkeypatch, capsys, options, status, message):
    found, said, _ = screen(folder, monkeypatch, capsys, *options)
    assert found == status
    assert message in said.err
