"""Maps come back as they went in, by setting and image, from whichever process."""

import errno

import numpy as np
import pytest
from stores import explanation, quickly, write_maps

from repeat_xai.errors import OutputError
from repeat_xai.store import MapStore

IMAGES = [f"{n}.png" for n in range(8)]


@pytest.mark.parametrize("place", ["path", "text", "file://", "memory://"])
def test_maps_may_lie_anywhere(tmp_path, place):
    where = tmp_path / "deep/maps.zarr"
    store = MapStore(where if place == "path" else str(where) if place == "text" else f"{place}{where}")
    store.write({"seed": 0}, IMAGES, 3, explanation(1 / 3))
    store.write({"seed": 1}, IMAGES, 3, explanation(2.0))
    kinds = {"importance": 1, "uncertainty": 2, "vote_share": 4}
    for kind, parts in kinds.items():
        found = MapStore(store.url).read({"seed": 0}, 3, kind)
        assert found.dtype == np.float32
        assert np.array_equal(found, np.full((6, 5), np.float32(1 / 3 / parts)))
    assert np.isnan(store.read({"seed": 0}, 4, "importance")).all()


def test_what_is_not_there_is_said_in_a_line(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    with pytest.raises(OutputError, match="holds no importance of that setting"):
        store.read({"seed": 0}, 0, "importance")
    store.write({"seed": 0}, IMAGES, 3, explanation(1.0))
    with pytest.raises(OutputError, match="holds no beauty of that setting"):
        store.read({"seed": 0}, 0, "beauty")
    with pytest.raises(OutputError, match="importance of image 8 cannot be read"):
        store.read({"seed": 0}, 8, "importance")
    with pytest.raises(OutputError, match="cannot be opened as a store"):
        MapStore("nowhere://maps").write({"seed": 0}, IMAGES, 3, explanation(1.0))


def test_maps_of_a_folder_that_has_changed_are_not_mixed_with_those_of_before(tmp_path):
    store = MapStore(tmp_path / "maps.zarr")
    store.write({"seed": 0}, IMAGES, 3, explanation(1.0))
    with pytest.raises(OutputError, match="those there are of other images; keep these elsewhere"):
        store.write({"seed": 0}, ["00.png", *IMAGES], 3, explanation(2.0))
    assert (store.read({"seed": 0}, 3, "importance") == 1).all()


def test_a_full_disk_is_said_in_a_line(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = MapStore(tmp_path / "maps.zarr")
    store.write({"seed": 0}, IMAGES, 3, explanation(1.0))
    monkeypatch.setattr("zarr.storage._local._put", full)
    with pytest.raises(OutputError, match=r"maps cannot be written \(.*No space left on device\)"):
        store.write({"seed": 0}, IMAGES, 4, explanation(1.0))


def test_processes_make_the_same_arrays_at_the_same_time(tmp_path):
    abouts = [{"seed": seed} for seed in range(10)]
    start = quickly.Barrier(2)
    processes = [
        quickly.Process(target=write_maps, args=(tmp_path / "maps.zarr", abouts, IMAGES, numbers, start), daemon=True)
        for numbers in (range(0, 8, 2), range(1, 8, 2))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    store = MapStore(tmp_path / "maps.zarr")
    for about in abouts:
        for number in range(8):
            assert (store.read(about, number, "uncertainty") == (number + 1) / 2).all()
