"""Tests that only regular files are read, and no further than a limit."""

import os
import socket
from contextlib import contextmanager

import pytest

import repeat_xai as rx
from repeat_xai.files.atomic import writing
from repeat_xai.files.reading import expect_regular, json_object, open_regular, read_json


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
def test_anything_but_a_regular_file_is_refused_and_left_unchanged(make, tmp_path):
    path = tmp_path / "maps.npz"
    make(path)
    before = path.lstat()
    with pytest.raises(rx.RepeatError, match="not a regular file"):
        open_regular(path)
    with pytest.raises(rx.RepeatError, match="not a regular file"), writing(path):
        pass
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_socket_is_refused_and_a_link_to_a_file_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with listening("socket"), pytest.raises(rx.RepeatError, match="not a regular file"):
        open_regular(tmp_path / "socket")
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"content"
    expect_regular(tmp_path / "absent")


def test_json_is_read_up_to_a_size_and_a_depth(tmp_path):
    path = tmp_path / "record.json"
    path.write_text('{"a": [1, {"b": 2}]}')
    assert read_json(path, max_bytes=20) == {"a": [1, {"b": 2}]}
    with pytest.raises(ValueError, match="more than 19 bytes"):
        read_json(path, max_bytes=19)
    deep = f"{'[' * 31}{']' * 31}"
    assert "a" in json_object(f'{{"a": {deep}}}')
    for text in (f'{{"a": [{deep}]}}', "[" * 100_000):
        with pytest.raises(ValueError, match="nested too deep"):
            json_object(text)
    with pytest.raises(ValueError, match="no object"):
        json_object("[1]")
