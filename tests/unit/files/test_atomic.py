"""A file is there whole or not at all, is never waited for, and leaves no draft behind for long."""

import os
import socket
import time
from contextlib import contextmanager

import pytest
from hostile.kills import write_and_wait
from stores import forkserver

import repeat_xai as rx
from repeat_xai.files import atomic as files
from repeat_xai.files.atomic import expect_regular, opened, sweep, writing


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
    with pytest.raises(rx.RepeatError, match="is no name for a file"), writing(tmp_path / "a\0b"):
        pass
    with pytest.raises(rx.RepeatError, match=r"cannot be written \(encoder error\)"), writing(tmp_path / "a"):
        raise OSError("encoder error")


def test_a_folder_that_vanishes_meanwhile_is_one_line(tmp_path):
    with pytest.raises(rx.RepeatError, match="cannot be written"), writing(tmp_path / "out" / "maps.npz") as draft:
        draft.unlink()
        draft.parent.rmdir()


@contextmanager
def listening(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        yield


SPECIAL = {
    "a FIFO": os.mkfifo,
    "a folder": os.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_regular_file_is_refused_and_left_alone(make, tmp_path):
    path = tmp_path / "maps.npz"
    make(path)
    before = path.lstat()
    with pytest.raises(rx.RepeatError, match=r"maps\.npz: is not a regular file"):
        opened(path)
    with pytest.raises(rx.RepeatError, match=r"maps\.npz: is not a regular file"), writing(path):
        pass
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_socket_is_refused_and_a_link_to_a_file_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with listening("socket"), pytest.raises(rx.RepeatError, match="is not a regular file"):
        opened(tmp_path / "socket")
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with opened(tmp_path / "link") as file:
        assert file.read() == b"content"
    expect_regular(tmp_path / "absent")


@pytest.fixture
def killed(tmp_path):
    """Starts a process that writes a file and waits; a call of what it returns kills the process."""

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


def test_drafts_of_the_dead_are_swept_and_those_of_the_living_kept(tmp_path, killed):
    kill, kill_too = killed("a.npz"), killed("b.png")
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    kill()
    sweep(tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".png"]
    kill_too()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    sweep(tmp_path / "nowhere")


def test_drafts_of_this_process_are_kept(tmp_path):
    with writing(tmp_path / "a.npz") as draft:
        draft.write_text("half")
        sweep(tmp_path)
        assert draft.exists()
    assert (tmp_path / "a.npz").read_text() == "half"


def test_nothing_of_the_users_own_is_swept(tmp_path):
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
    sweep(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_drafts_of_another_machine_are_swept_after_a_day(tmp_path):
    other = f"{int(files.MACHINE, 16) ^ 1:08x}"
    young, old = (tmp_path / f".repeat-xai-draft-{other}-{which}.png" for which in ("00000000", "11111111"))
    young.write_text("")
    old.write_text("")
    os.utime(old, (0, time.time() - files.OLD - 60))
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [young]


def test_a_draft_swept_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    """Another run may look at a draft in the moment between its birth and its lock."""
    lock, swept = files._locked, []

    def swept_first(descriptor):
        if not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        return lock(descriptor)

    monkeypatch.setattr(files, "_locked", swept_first)
    with writing(tmp_path / "a") as draft:
        assert draft not in swept
        assert draft.exists()


def test_without_locks_files_are_written_and_no_draft_is_swept(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    with writing(tmp_path / "a") as draft:
        draft.write_text("whole")
        sweep(tmp_path)
        assert draft.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
