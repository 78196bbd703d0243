"""Rows are kept as they come, whatever becomes of the run."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from stores import bits, row

from repeat_xai.errors import OutputError
from repeat_xai.experiments import making_rows
from repeat_xai.experiments.store.row_store import RowStore

ROWS = [row(str(number), code=tuple(number / (n + 1) for n in range(100))) for number in range(60)]


@dataclass
class Ready:
    """An executor whose rows are there already."""

    made: list
    closed: bool = False
    concurrency = 1

    def rows(self, work):
        try:
            yield from self.made
        finally:
            self.closed = True

    def close(self):
        pass


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A file a row, merged now and then."""
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", -1.0)
    monkeypatch.setattr(making_rows, "FILES_BETWEEN_MERGES", 5)


def left(store):
    done = store.score_names()
    return Ready([row for row in ROWS if row.key not in done])


def kept(store):
    return {key: bits(row) for key, row in store.rows().items()}


ALL = {row.key: bits(row) for row in ROWS}


def test_files_are_merged_while_rows_still_come(tmp_path):
    store = RowStore(tmp_path)
    most = 0
    for _ in making_rows.make_rows([], store, Ready(ROWS)):
        most = max(most, len(list(tmp_path.iterdir())))
    assert kept(store) == ALL
    assert most < 30


@pytest.mark.parametrize("ended", ["closed", "interrupted", "forgotten"])
def test_rows_told_of_are_kept_however_it_ends(tmp_path, monkeypatch, ended):
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", 1000.0)
    store, executor = RowStore(tmp_path), Ready(ROWS)
    rows = making_rows.make_rows([], store, executor)
    for _ in range(7):
        next(rows)
    if ended == "closed":
        rows.close()
    elif ended == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            rows.throw(KeyboardInterrupt())
    else:
        del rows
    assert set(store.score_names()) == {str(number) for number in range(7)}
    assert executor.closed


def test_rows_of_long_work_do_not_wait_for_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", 1000.0)
    store = RowStore(tmp_path)
    rows = making_rows.make_rows([], store, Ready([row(str(number), seconds=600.0) for number in range(8)]))
    for _ in range(5):
        next(rows)
    assert set(store.score_names()) == {
        "0",
        "1",
        "2",
        "3",
    }  # 1,200 s of work a file, the fifth is told of before it is written
    rows.close()


@pytest.fixture
def small_disk(tmp_path):
    """Of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_ends_it_in_a_line_and_loses_nothing(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    store, executor = RowStore(small_disk / "rows"), Ready(ROWS)
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)") as ended:
        list(making_rows.make_rows([], store, executor))
    assert len(str(ended.value).splitlines()) == 1
    assert executor.closed
    before = kept(store)
    assert 0 < len(before) < len(ROWS)
    assert before.items() <= ALL.items()
    ballast.unlink()
    assert len(list(making_rows.make_rows([], store, left(store)))) == len(ROWS) - len(before)
    assert kept(store) == ALL


def test_so_does_a_disk_that_is_full_for_a_while(tmp_path, monkeypatch):
    """As above, where no disk can be mounted."""
    written, replace = [], Path.replace

    def full(path, target):
        written.append(target)
        if len(written) > 23:
            raise OSError(28, os.strerror(28))
        return replace(path, target)

    store, executor = RowStore(tmp_path / "rows"), Ready(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
            list(making_rows.make_rows([], store, executor))
    assert executor.closed
    before = kept(store)
    assert 0 < len(before) < len(ROWS)
    assert before.items() <= ALL.items()
    list(making_rows.make_rows([], store, left(store)))
    assert kept(store) == ALL
    assert [path for path in (tmp_path / "rows").iterdir() if path.name.startswith(".")] == []


def test_files_that_cannot_be_merged_are_kept_as_they_are(tmp_path, monkeypatch):
    def refused(store):
        raise OutputError("somewhere: cannot be written")

    monkeypatch.setattr(RowStore, "merge", refused)
    store = RowStore(tmp_path)
    with pytest.warns(UserWarning, match="rows are kept but not merged: somewhere: cannot be written"):
        list(making_rows.make_rows([], store, Ready(ROWS[:7])))
    assert len(store.score_names()) == 7
