"""A file is there whole or not at all."""

import pytest

import repeat_xai as rx
from repeat_xai.files import writing


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "maps.npz"
    path.write_text("old")
    with pytest.raises(RuntimeError), writing(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_good_write_takes_the_place_and_is_readable_by_all(tmp_path):
    path = tmp_path / "new" / "maps.npz"
    with writing(path) as draft:
        draft.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o444 == 0o444


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rx.RepeatError, match=r"file/maps\.npz: cannot be written"), writing(tmp_path / "file/maps.npz"):
        pass
