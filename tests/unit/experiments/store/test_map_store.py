"""Tests of the store of maps: maps are read back unchanged by the key of their row, whichever process wrote them."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from stores import explanation, forkserver, write_maps

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store.map_store import MapStore, NoMapsError


@pytest.mark.parametrize("place", ["path", "text", "file://", "memory://"])
def test_a_store_of_maps_may_be_a_path_or_a_url(tmp_path, place):
    where = tmp_path / "deep/maps.zarr"
    store = MapStore(where if place == "path" else str(where) if place == "text" else f"{place}{where}")
    with pytest.raises(NoMapsError):
        store.read("abc")
    store.write("abc", "cat.png", explanation(1 / 3), calls=257, seconds=1.5)
    store.write("abd", "cat.png", explanation(2.0))
    maps, calls, seconds = MapStore(store.url).read("abc")
    assert (calls, seconds) == (257, 1.5)
    assert list(maps) == ["importance", "uncertainty", "vote_share"]
    for values, parts in zip(maps.values(), (1, 2, 4), strict=True):
        assert values.dtype == np.float32
        assert np.array_equal(values, np.full((6, 5), np.float32(1 / 3 / parts)))


def test_a_path_may_contain_special_characters(tmp_path):
    for name in ("runs [v2]", "what?", "a*b"):
        store = MapStore(tmp_path / name / "maps.zarr")
        store.write("abc", "cat.png", explanation(1.0))
        assert set(store.read("abc").maps) == {"importance", "uncertainty", "vote_share"}


def test_an_absolute_store_is_the_same_from_another_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = MapStore(Path("maps.zarr")).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.write("abc", "cat.png", explanation(1.0))
    MapStore(tmp_path / "maps.zarr").read("abc")
    assert MapStore("memory://maps").absolute() == MapStore("memory://maps")


def test_new_maps_replace_stored_ones(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    for value in (1.0, 2.0):
        store.write("abc", "cat.png", explanation(value))
        assert (store.read("abc").maps["importance"] == value).all()


def test_missing_maps_and_unknown_urls_give_errors(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    with pytest.raises(OutputError, match="no maps of row abc"):
        store.read("abc")
    with pytest.raises(OutputError, match="cannot be opened as a store"):
        MapStore("nowhere://maps").write("abc", "cat.png", explanation(1.0))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_maps_that_could_not_be_written_completely_are_not_stored(tmp_path, monkeypatch, value):
    """This includes maps of zeros only, whose values Zarr does not write by default."""
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(value))
    assert (store.read("abc").maps["importance"] == value).all()
    from zarr.storage import _local

    put = _local._put

    def only_attributes(path, *rest, **options):
        return put(path, *rest, **options) if path.name == "zarr.json" else full()

    monkeypatch.setattr(_local, "_put", only_attributes)
    with pytest.raises(OutputError, match="No space left"):
        store.write("abd", "cat.png", explanation(value))
    with pytest.raises(NoMapsError):
        store.read("abd")
    assert [path.name for path in (tmp_path / "maps.zarr").iterdir()] == ["ab"]
    assert [path.name for path in (tmp_path / "maps.zarr/ab").iterdir()] == ["abc"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zarr.json", "c/0/0/0"])
def test_flipped_bits_are_detected(tmp_path, name):
    """A flipped bit gives an error unless it changes nothing that is read, such as one kind of space into another."""
    store = MapStore(tmp_path / "maps.zarr")
    values = torch.rand(3, 6, 5, generator=torch.Generator().manual_seed(0))
    store.write("abc", "cat.png", explanation(values), calls=257, seconds=1.5)
    expected, refused = store.read("abc"), 0
    file = tmp_path / "maps.zarr/ab/abc" / name
    content = file.read_bytes()
    for bit in range(0, 8 * len(content), 7):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            stored = store.read("abc")
        except OutputError:
            refused += 1
        else:
            assert (stored.calls, stored.seconds) == expected[1:]
            for kind in expected.maps:
                np.testing.assert_array_equal(stored.maps[kind], expected.maps[kind])
    assert refused > 0.4 * len(content)


def test_an_array_with_a_huge_shape_is_refused_before_it_takes_memory(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(1.0))
    file = tmp_path / "maps.zarr/ab/abc/zarr.json"
    about = json.loads(file.read_text())
    about["shape"] = about["chunk_grid"]["configuration"]["chunk_shape"] = [3, 10**6, 10**6]
    file.write_text(json.dumps(about))
    with pytest.raises(OutputError, match="has the shape"):
        store.read("abc")


@pytest.mark.parametrize("name", ["zarr.json", "c/0/0/0"])
def test_a_fifo_in_place_of_a_file_is_refused(tmp_path, name):
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(1.0))
    file = tmp_path / "maps.zarr/ab/abc" / name
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(OutputError, match=r"damaged .*not a regular file"):
        store.read("abc")
    store.write("abc", "cat.png", explanation(2.0))
    assert (store.read("abc").maps["importance"] == 2).all()


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_gives_an_error(tmp_path, monkeypatch):
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(1.0))
    monkeypatch.setattr("zarr.storage._local._put", full)
    with pytest.raises(OutputError, match="No space left"):
        store.write("abd", "cat.png", explanation(1.0))


@pytest.mark.slow
def test_processes_write_at_the_same_time(tmp_path):
    start = forkserver.Barrier(2)
    processes = [
        forkserver.Process(target=write_maps, args=(tmp_path / "maps.zarr", numbers, start), daemon=True)
        for numbers in (range(0, 40, 2), range(1, 40, 2))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = MapStore(tmp_path / "maps.zarr")
    for number in range(40):
        assert (store.read(f"row{number}").maps["uncertainty"] == (number + 1) / 2).all()
