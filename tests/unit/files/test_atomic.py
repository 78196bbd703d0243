"""Tests that files appear whole or not at all, and that drafts of killed runs are removed."""

import os
import time

import pytest
from hostile.kills import write_and_wait
from stores import forkserver

import repeat_xai as rx
from repeat_xai.files import atomic as files
from repeat_xai.files.atomic import remove_old_drafts, writing


def test_a_failed_write_keeps_the_old_file_and_leaves_no_draft(tmp_path):
    path = tmp_path / "maps.npz"
    path.write_text("old")
    with pytest.raises(RuntimeError), writing(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_write_replaces_the_file_and_is_readable_by_everyone(tmp_path):
    path = tmp_path / "new" / "maps.npz"
    with writing(path) as draft:
        draft.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert path.stat().st_mode & 0o444 == 0o444


def test_the_error_names_the_file_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rx.RepeatError, match=r"maps\.npz: cannot be written"), writing(tmp_path / "file/maps.npz"):
        pass
    with pytest.raises(rx.RepeatError, match="no name"), writing(tmp_path / "a\0b"):
        pass
    with pytest.raises(rx.RepeatError, match="encoder error"), writing(tmp_path / "a"):
        raise OSError("encoder error")


def test_a_folder_that_is_removed_during_the_write_is_an_error_in_one_line(tmp_path):
    with pytest.raises(rx.RepeatError, match="cannot be written"), writing(tmp_path / "out" / "maps.npz") as draft:
        draft.unlink()
        draft.parent.rmdir()


@pytest.fixture
def killed(tmp_path):
    """Return a function that starts a process which writes a file and waits; calling its result kills the process."""

    def begin(name):
        receiving, sending = forkserver.Pipe(duplex=False)
        process = forkserver.Process(target=write_and_wait, args=(tmp_path / name, sending), daemon=True)
        process.start()
        sending.close()
        receiving.recv()

        def kill():
            process.kill()
            process.join()

        return kill

    return begin


@pytest.mark.slow
def test_drafts_of_killed_processes_are_removed_and_those_of_running_ones_kept(tmp_path, killed):
    kill, kill_too = killed("a.npz"), killed("b.png")
    remove_old_drafts(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    kill()
    remove_old_drafts(tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".png"]
    kill_too()
    remove_old_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == []
    remove_old_drafts(tmp_path / "nowhere")


def test_drafts_of_this_process_are_kept(tmp_path):
    with writing(tmp_path / "a.npz") as draft:
        draft.write_text("half")
        remove_old_drafts(tmp_path)
        assert draft.exists()
    assert (tmp_path / "a.npz").read_text() == "half"


def test_files_of_the_user_are_never_removed(tmp_path):
    name = f".repeat-xai-draft-{files.MACHINE}-abcdefg_"
    for own in (".hidden.png", f"{name}x", name.upper(), name[1:], ".repeat-xai-draft-notes", ".repeat-xai-draft-"):
        (tmp_path / own).write_text("mine")
    (tmp_path / f"{name}.dir").mkdir()
    os.mkfifo(tmp_path / f"{name}.fifo")
    (tmp_path / f"{name}.link").symlink_to(".hidden.png")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / name).write_text("in a folder below")
    before = sorted(tmp_path.rglob("*"))
    (tmp_path / name).write_text("")
    remove_old_drafts(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_drafts_of_another_machine_are_removed_after_a_day(tmp_path):
    other = f"{int(files.MACHINE, 16) ^ 1:08x}"
    young, old = (tmp_path / f".repeat-xai-draft-{other}-{which}.png" for which in ("00000000", "11111111"))
    young.write_text("")
    old.write_text("")
    os.utime(old, (0, time.time() - files.MAX_DRAFT_AGE - 60))
    remove_old_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == [young]


def test_a_draft_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Simulate another run that removes a draft between its creation and its lock."""
    lock, removed = files._lock, []

    def remove_first(descriptor):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        return lock(descriptor)

    monkeypatch.setattr(files, "_lock", remove_first)
    with writing(tmp_path / "a") as draft:
        assert draft not in removed
        assert draft.exists()


def test_without_locks_files_are_written_and_no_draft_is_removed(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    with writing(tmp_path / "a") as draft:
        draft.write_text("whole")
        remove_old_drafts(tmp_path)
        assert draft.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
