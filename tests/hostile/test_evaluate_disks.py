"""Tests of `evaluate` on full or read-only disks, in folders that are removed, and with wrong clocks."""

import errno
import os
import shutil
import signal
import time

import pytest
from hostile.damages import fifo
from hostile.disks import file_size_limited, mounted, remount
from hostile.evaluations import WORK_LINE, evaluate_once, every_row, expect_same_results, rows_of, run_again
from hostile.kills import files_below, write_and_wait
from hostile.outputs import whole
from hostile.verdicts import Case, drafts
from stores import forkserver

from repeat_xai.experiments import making_rows as running
from repeat_xai.experiments.store.row_store import RowStore

LONG_PART = pytest.mark.hostile
YEAR = 365 * 24 * 3600


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return evaluate_once(tmp_path_factory.mktemp("undisturbed"), "--maps", photos=3)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Write each row as soon as it is made."""
    monkeypatch.setattr(running, "SECONDS_PER_FILE", -1.0)


def refused(run, out, *, lines=9):
    """Run the command into a folder, and return the verdict without the line that reports the missing rows."""
    verdict = run.into(out, lines=lines)
    return verdict._replace(text="\n".join(line for line in verdict.text.splitlines() if not line.endswith(WORK_LINE)))


def expect_sound(run, out):
    """Check that every file is whole, every row is one of the undisturbed run, and no draft is left."""
    assert [path for path in files_below(out) if not whole(path)] == []
    assert rows_of(out).items() <= rows_of(run.whole).items()
    assert drafts(out) == []


def expect_mended(run, out):
    assert run_again(run, out).kind == "right"
    expect_same_results(run, out)


@pytest.mark.parametrize(
    "size", [pytest.param(n, marks=() if n == 48 else LONG_PART) for n in (4, 12, 24, 48, 64, 96, 128)]
)
def test_a_full_disk_gives_an_error_and_a_later_run_completes_the_results(size, run, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size={size}k") as disk:
        verdict = refused(run, disk / "out")
        judge("disk", verdict, Case(name=str(size), make=fifo, message=os.strerror(errno.ENOSPC)))
        expect_sound(run, disk / "out")
        remount(disk, "size=64m")
        expect_mended(run, disk / "out")


@pytest.mark.parametrize(
    "limit", [pytest.param(n, marks=() if n == 2000 else LONG_PART) for n in (300, 2000, 6000, 12_000)]
)
def test_a_limit_on_the_size_of_files_gives_an_error(limit, run, judge, tmp_path):
    with file_size_limited(limit):
        verdict = refused(run, tmp_path / "out")
    judge("disk", verdict, Case(name=str(limit), make=fifo, message=os.strerror(errno.EFBIG)))
    expect_sound(run, tmp_path / "out")
    expect_mended(run, tmp_path / "out")


@pytest.mark.parametrize("has_results", [False, pytest.param(True, marks=LONG_PART)])
def test_a_read_only_disk_gives_one_line(has_results, run, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=64m") as disk:
        if has_results:
            run.copy(disk / "out")
            shutil.rmtree(disk / "out/rows")
        remount(disk, "ro")
        verdict = refused(run, disk / "out", lines=2)
        judge("disk", verdict, Case(name=str(has_results), make=fifo, message="Read-only file system"))
        remount(disk, "rw")
        expect_mended(run, disk / "out")


def at_row(number, action, monkeypatch):
    """Call `action` before the row of this number is written."""
    add, added = RowStore.add, []

    def adding(store, rows):
        added.extend(rows)
        if rows and len(added) == number:
            action()
        add(store, rows)

    monkeypatch.setattr(RowStore, "add", adding)


@pytest.mark.parametrize("number", [pytest.param(1, marks=LONG_PART), 3, pytest.param(6, marks=LONG_PART)])
def test_a_removed_folder_loses_only_its_own_rows_and_gives_an_error(number, run, judge, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        at_row(number, lambda: shutil.rmtree(out), patch)
        verdict = refused(run, out)
    judge("disk", verdict, Case(name=str(number), make=fifo, message="run the same command again"))
    expect_sound(run, out)
    assert len(every_row(out)) <= len(rows_of(run.whole)) - number + 1
    expect_mended(run, out)


def test_a_folder_that_becomes_a_file_gives_an_error(run, judge, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def replace():
        shutil.rmtree(out)
        out.write_text("a file")

    with monkeypatch.context() as patch:
        at_row(3, replace, patch)
        verdict = refused(run, out)
    judge("disk", verdict, Case(name="a file", make=fifo, message=str(out)))
    assert out.read_text() == "a file"
    out.unlink()
    expect_mended(run, out)


def test_a_disk_that_becomes_read_only_keeps_stored_rows(run, judge, tmp_path, monkeypatch):
    with mounted(tmp_path / "disk", "size=64m") as disk:
        with monkeypatch.context() as patch:
            at_row(3, lambda: remount(disk, "ro"), patch)
            verdict = refused(run, disk / "out")
        judge("disk", verdict, Case(name="read-only", make=fifo, message="Read-only file system"))
        assert len(rows_of(disk / "out")) == 2
        remount(disk, "rw")
        expect_mended(run, disk / "out")


@pytest.mark.parametrize("year", [pytest.param(1970, marks=LONG_PART), 2100])
def test_nothing_is_made_again_after_the_clock_was_changed(year, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    for path in out.rglob("*"):
        os.utime(path, ((year - 1970) * YEAR,) * 2)
    verdict = run.into(out)
    judge("disk", verdict, Case(name=str(year), make=fifo, expected="right", message=" 0 of 6 rows to make"))
    expect_same_results(run, out)


def test_a_clock_that_goes_backwards_does_no_harm(run, judge, tmp_path, monkeypatch):
    hours = iter(range(10**6))
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start - 3600 * next(hours))
    judge("disk", run_again(run, tmp_path / "out"), Case(name="backward", make=fifo, expected="right", message="^$"))
    monkeypatch.undo()
    expect_mended(run, tmp_path / "out")


@pytest.mark.parametrize("place", ["rows", "maps.zarr", pytest.param("", marks=LONG_PART)])
def test_drafts_without_a_writer_are_removed_whatever_their_time(place, run, judge, tmp_path):
    """One draft is from 1970, one from 2100; they stay while a process writes them, and go after it is killed."""
    out = run.copy(tmp_path / "out")
    writers, names = [], []
    for year in (1970, 2100):
        receiving, sending = forkserver.Pipe(duplex=False)
        writers.append(
            forkserver.Process(target=write_and_wait, args=(out / place / "more.parquet", sending), daemon=True)
        )
        writers[-1].start()
        names.append(out / place / receiving.recv())
        os.utime(names[-1], ((year - 1970) * YEAR,) * 2)
    judge("disk", run_again(run, out), Case(name=place, make=fifo, expected="right", message="^$"))
    assert [name.exists() for name in names] == [True, True]
    for writer in writers:
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
    expect_mended(run, out)
