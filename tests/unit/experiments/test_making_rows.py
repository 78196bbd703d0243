"""Tests that rows are stored as they are made, however a run ends."""

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
class Prepared:
    """An executor that yields rows which were made before."""

    prepared: list
    closed: bool = False
    concurrency = 1

    def rows(self, work):
        try:
            yield from self.prepared
        finally:
            self.closed = True

    def close(self):
        pass


@pytest.fixture(autouse=True)
def one_file_for_each_row(monkeypatch):
    """Write a file for each row, and merge the files after every five."""
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", -1.0)
    monkeypatch.setattr(making_rows, "FILES_BETWEEN_MERGES", 5)


def executor_of_missing_rows(store):
    stored = store.score_names()
    return Prepared([row for row in ROWS if row.key not in stored])


def stored_bits(store):
    return {key: bits(row) for key, row in store.rows().items()}


ALL = {row.key: bits(row) for row in ROWS}


def test_files_are_merged_while_rows_are_still_made(tmp_path):
    store = RowStore(tmp_path)
    max_files = 0
    for _ in making_rows.make_rows([], store, Prepared(ROWS)):
        max_files = max(max_files, len(list(tmp_path.iterdir())))
    assert stored_bits(store) == ALL
    assert max_files < 30


@pytest.mark.parametrize("ending", ["closed", "interrupted", "deleted"])
def test_rows_that_were_yielded_are_stored_however_the_run_ends(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", 1000.0)
    store, executor = RowStore(tmp_path), Prepared(ROWS)
    rows = making_rows.make_rows([], store, executor)
    for _ in range(7):
        next(rows)
    if ending == "closed":
        rows.close()
    elif ending == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            rows.throw(KeyboardInterrupt())
    else:
        del rows
    assert set(store.score_names()) == {str(number) for number in range(7)}
    assert executor.closed


def test_rows_that_took_long_are_stored_before_many_more_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(making_rows, "SECONDS_PER_FILE", 1000.0)
    store = RowStore(tmp_path)
    rows = making_rows.make_rows([], store, Prepared([row(str(number), seconds=600.0) for number in range(8)]))
    for _ in range(5):
        next(rows)
    # the first file holds 1,200 s of work; the fifth row is yielded before it is written
    assert set(store.score_names()) == {"0", "1", "2", "3"}
    rows.close()


@pytest.fixture
def small_disk(tmp_path):
    """A mounted disk of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_ends_the_run_with_an_error_of_one_line_and_loses_no_row(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    store, executor = RowStore(small_disk / "rows"), Prepared(ROWS)
    with pytest.raises(OutputError, match="No space left") as ended:
        list(making_rows.make_rows([], store, executor))
    assert len(str(ended.value).splitlines()) == 1
    assert executor.closed
    before = stored_bits(store)
    assert 0 < len(before) < len(ROWS)
    assert before.items() <= ALL.items()
    ballast.unlink()
    assert len(list(making_rows.make_rows([], store, executor_of_missing_rows(store)))) == len(ROWS) - len(before)
    assert stored_bits(store) == ALL


def test_a_disk_that_is_full_for_a_while_loses_no_row(tmp_path, monkeypatch):
    """The same test for machines where no disk can be mounted."""
    written, replace = [], Path.replace

    def full(path, target):
        written.append(target)
        if len(written) > 23:
            raise OSError(28, os.strerror(28))
        return replace(path, target)

    store, executor = RowStore(tmp_path / "rows"), Prepared(ROWS)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(OutputError, match="No space left"):
            list(making_rows.make_rows([], store, executor))
    assert executor.closed
    before = stored_bits(store)
    assert 0 < len(before) < len(ROWS)
    assert before.items() <= ALL.items()
    list(making_rows.make_rows([], store, executor_of_missing_rows(store)))
    assert stored_bits(store) == ALL
    assert [path for path in (tmp_path / "rows").iterdir() if path.name.startswith(".")] == []


def test_files_that_cannot_be_merged_stay_as_they_are(tmp_path, monkeypatch):
    def refused(store):
        raise OutputError("somewhere: cannot be written")

    monkeypatch.setattr(RowStore, "merge", refused)
    store = RowStore(tmp_path)
    with pytest.warns(UserWarning, match="not merged"):
        list(making_rows.make_rows([], store, Prepared(ROWS[:7])))
    assert len(store.score_names()) == 7
