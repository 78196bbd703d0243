"""Run `evaluate` again on a folder of results when a metric, an image, a map or the folder itself has changed."""

import os
import shutil
from pathlib import Path

import pytest
from command import run_here
from small_work import network, pictures

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.experiments import making_rows as run
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.metrics import METRICS, MapMetric, complexity

IMAGES = 4


@pytest.fixture
def photos(tmp_path):
    return Path(pictures(tmp_path / "photos", IMAGES))


@pytest.fixture
def evaluate(monkeypatch, capsys, tmp_path, photos):
    """Run the command on the photos; return its exit status, what it wrote to standard error, and its encoder calls."""
    cheap = ("--encoder", network(tmp_path).name, "--methods", "relax", "--masks", 16, "--protocol", "encoder")

    def command(*options):
        out = ("--dataset", photos, "--out", tmp_path / "out")
        with metering() as meter:
            status, output = run_here(monkeypatch, capsys, "evaluate", *out, *cheap, *options)
        return status, output.err, meter.calls

    return command


def register(monkeypatch, name, function=lambda maps: maps.amax((-2, -1))):
    metric = MapMetric(name=name, better="neither", function=function)
    monkeypatch.setitem(METRICS, name, metric)


def scores(tmp_path):
    """Return the scores of every image by its name."""
    return {row.image: dict(row.scores) for row in RowStore(tmp_path / "out/rows").rows().values()}


@pytest.mark.slow
def test_a_metric_registered_later_is_computed_for_rows_that_are_there(evaluate, monkeypatch, tmp_path):
    assert evaluate()[0] == 0
    before = scores(tmp_path)
    register(monkeypatch, "largest")
    status, errors, calls = evaluate("--metrics", "complexity")
    assert (status, calls) == (0, 0), "the new metric was not requested"
    status, errors, calls = evaluate("--metrics", "largest")
    assert (status, f"{IMAGES} of {IMAGES} rows to make" in errors, calls) == (0, True, IMAGES * 17)
    after = scores(tmp_path)
    for image, values in before.items():
        assert after[image]["largest.importance"] > 0
        assert {name: after[image][name] for name in values} == pytest.approx(values, nan_ok=True, abs=0)
    assert "0 of 4 rows to make" in evaluate("--metrics", "largest,complexity")[1]


@pytest.mark.slow
def test_a_metric_registered_later_is_computed_from_stored_maps_without_the_encoder(evaluate, monkeypatch, tmp_path):
    assert evaluate("--maps")[0] == 0
    register(monkeypatch, "largest")
    status, errors, calls = evaluate("--metrics", "largest")
    assert (status, f"{IMAGES} of {IMAGES} rows to make" in errors, calls) == (0, True, 0)
    for key, row in RowStore(tmp_path / "out/rows").rows().items():
        maps = MapStore(tmp_path / "out/maps.zarr").read(key).maps
        assert row.scores["largest.importance"] == maps["importance"].max()
        assert row.scores["largest.uncertainty"] == maps["uncertainty"].max()
        assert (row.calls, row.seconds > 0) == (17, True)


@pytest.mark.slow
def test_a_folder_with_maps_grows_only_when_maps_are_asked_for(evaluate, tmp_path):
    assert evaluate("--maps", "--images", 1)[0] == 0
    assert "3 of 4 rows to make" in evaluate()[1]
    assert len(list((tmp_path / "out/maps.zarr").glob("*/*"))) == 1
    assert evaluate("--maps")[0] == 0
    assert len(list((tmp_path / "out/maps.zarr").glob("*/*"))) == IMAGES


def test_a_damaged_map_is_made_again_with_a_message(evaluate, tmp_path):
    assert evaluate("--maps")[0] == 0
    chunk = sorted((tmp_path / "out/maps.zarr").glob("*/*/c/0/0/0"))[1]
    content = chunk.read_bytes()
    chunk.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    status, errors, calls = evaluate("--maps")
    assert (status, "1 of 4 rows to make" in errors, calls) == (0, True, 17)
    assert f"maps of row {chunk.parents[3].name} are damaged" in errors
    assert chunk.read_bytes() == content
    assert evaluate("--maps")[2] == 0


def changed(photo: Path, other: Path) -> None:
    """Give a photo other content of the same size, and leave the time of its last change as it was."""
    about = photo.stat()
    content = other.read_bytes()[: about.st_size].ljust(about.st_size, b"\0")
    photo.write_bytes(content)
    os.utime(photo, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (photo.stat().st_size, photo.stat().st_mtime_ns) == (about.st_size, about.st_mtime_ns)


def test_content_that_changes_while_time_and_size_stay_is_noticed_by_check_content(evaluate, photos, tmp_path):
    first, second, *_ = sorted(photos.iterdir())
    larger = max(first, second, key=lambda photo: photo.stat().st_size)
    smaller = first if larger is second else second
    assert evaluate()[0] == evaluate("--check", "content")[0] == 0
    assert evaluate("--check", "content")[2] == 0
    changed(larger, smaller)
    assert evaluate()[2] == 0, "time and size are what they were"
    before = set(scores(tmp_path))
    status, errors, calls = evaluate("--check", "content")
    assert (status, "1 of 4 rows to make" in errors, calls) == (0, True, 17)
    (image,) = set(scores(tmp_path)) - before
    assert image.startswith(larger.name)
    encoder = network(tmp_path).load("cpu")
    fresh = rx.Relax(masks=16)(encoder, rx.load_image(larger, encoder), seed=0)
    assert scores(tmp_path)[image]["complexity.importance"] == pytest.approx(complexity(fresh.importance).item(), abs=0)


def test_an_image_that_cannot_be_read_is_one_failure_also_where_content_is_checked(evaluate, photos):
    (photos / "9999.png").write_bytes(b"no picture")
    status, errors, _ = evaluate("--check", "content")
    assert (status, errors.count("9999.png")) == (1, 1)
    assert "5 of 5 rows to make" in errors


def test_rows_that_vanish_during_a_run_are_reported_at_its_end(evaluate, monkeypatch, tmp_path):
    calls_of_the_metric = []

    def removing(maps):
        calls_of_the_metric.append(None)
        if len(calls_of_the_metric) == 3:
            shutil.rmtree(tmp_path / "out/rows")
        return maps.amax((-2, -1))

    monkeypatch.setattr(run, "SECONDS_PER_FILE", -1.0)
    register(monkeypatch, "largest", removing)
    status, errors, _ = evaluate("--metrics", "largest")
    assert status == 1
    lost = [line for line in errors.splitlines() if "are gone from" in line]
    assert lost == [
        f"repeat-xai: 2 rows or their maps are gone from {tmp_path}/out/rows since they were made; "
        "run the same command again to make them again"
    ]
    status, errors, _ = evaluate("--metrics", "largest")
    assert (status, "2 of 4 rows to make" in errors) == (0, True)
