"""Maps come back as they went in, by the name of their row, from whichever process."""

import errno
from pathlib import Path

import numpy as np
import pytest
from stores import explanation, quickly, write_maps

from repeat_xai.errors import OutputError
from repeat_xai.store import MapStore


@pytest.mark.parametrize("place", ["path", "text", "file://", "memory://"])
def test_maps_may_lie_anywhere(tmp_path, place):
    where = tmp_path / "deep/maps.zarr"
    store = MapStore(where if place == "path" else str(where) if place == "text" else f"{place}{where}")
    assert store.keys() == set()
    store.write("abc", "cat.png", explanation(1 / 3))
    store.write("abd", "cat.png", explanation(2.0))
    again = MapStore(store.url)
    assert again.keys() == {"abc", "abd"}
    found = again.read("abc")
    assert list(found) == ["importance", "uncertainty", "vote_share"]
    for values, parts in zip(found.values(), (1, 2, 4), strict=True):
        assert values.dtype == np.float32
        assert np.array_equal(values, np.full((6, 5), np.float32(1 / 3 / parts)))


def test_a_path_may_hold_any_sign(tmp_path):
    for name in ("runs [v2]", "what?", "a*b"):
        store = MapStore(tmp_path / name / "maps.zarr")
        store.write("abc", "cat.png", explanation(1.0))
        assert store.keys() == {"abc"}


def test_a_path_is_the_same_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = MapStore(Path("maps.zarr")).absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.write("abc", "cat.png", explanation(1.0))
    assert MapStore(tmp_path / "maps.zarr").keys() == {"abc"}
    assert MapStore("memory://maps").absolute() == MapStore("memory://maps")


def test_maps_made_anew_take_the_place_of_those_there(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    for value in (1.0, 2.0):
        store.write("abc", "cat.png", explanation(value))
        assert (store.read("abc")["importance"] == value).all()


def test_what_is_not_there_is_said_in_a_line(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    with pytest.raises(OutputError, match=r"maps\.zarr: holds no maps of row abc"):
        store.read("abc")
    with pytest.raises(OutputError, match="cannot be opened as a store"):
        MapStore("nowhere://maps").write("abc", "cat.png", explanation(1.0))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_maps_without_their_numbers_do_not_count(tmp_path, monkeypatch, value):
    """Of zeros too, which Zarr would rather not write."""
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(value))
    assert store.keys() == {"abc"}
    from zarr.storage import _local

    whole = _local._put

    def only_what_it_is(path, *rest, **options):
        return whole(path, *rest, **options) if path.name == "zarr.json" else full()

    monkeypatch.setattr(_local, "_put", only_what_it_is)
    with pytest.raises(OutputError, match="No space left"):
        store.write("abd", "cat.png", explanation(value))
    assert store.keys() == {"abc"}


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_in_a_line(tmp_path, monkeypatch):
    store = MapStore(tmp_path / "maps.zarr")
    store.write("abc", "cat.png", explanation(1.0))
    monkeypatch.setattr("zarr.storage._local._put", full)
    with pytest.raises(OutputError, match=r"maps cannot be written \(.*No space left on device\)"):
        store.write("abd", "cat.png", explanation(1.0))


def test_processes_write_at_the_same_time(tmp_path):
    start = quickly.Barrier(2)
    processes = [
        quickly.Process(target=write_maps, args=(tmp_path / "maps.zarr", numbers, start), daemon=True)
        for numbers in (range(0, 40, 2), range(1, 40, 2))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = MapStore(tmp_path / "maps.zarr")
    assert len(store.keys()) == 40
    for number in range(40):
        assert (store.read(f"row{number}")["uncertainty"] == (number + 1) / 2).all()
