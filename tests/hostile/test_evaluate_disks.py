"""`evaluate` on disks that are full or read-only, in folders that vanish, and by clocks that are set."""

import errno
import os
import shutil
import signal
import time

import pytest
from hostile.damages import fifo
from hostile.disks import limited, mounted, remount
from hostile.evaluations import BESIDE, again, evaluated, every_row, expect_like, rows_of
from hostile.kills import files_below, write_and_wait
from hostile.outputs import whole
from hostile.verdicts import Case, drafts
from stores import forkserver

from repeat_xai.experiments import making_rows as running
from repeat_xai.experiments.store.row_store import RowStore

LONG = pytest.mark.hostile
YEAR = 365 * 24 * 3600


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return evaluated(tmp_path_factory.mktemp("undisturbed"), "--maps", photos=3)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Let each row be written as soon as it is made."""
    monkeypatch.setattr(running, "SECONDS_PER_FILE", -1.0)


def refused(run, out, *, lines=9):
    """Run the command into a folder; what it says beside how much is to be done."""
    verdict = run.into(out, lines=lines)
    return verdict._replace(said="\n".join(line for line in verdict.said.splitlines() if not line.endswith(BESIDE)))


def expect_sound(run, out):
    """Every file is whole, every row is that of the undisturbed run, and no draft is left."""
    assert [path for path in files_below(out) if not whole(path)] == []
    assert rows_of(out).items() <= rows_of(run.whole).items()
    assert drafts(out) == []


def expect_mended(run, out):
    assert again(run, out).kind == "right"
    expect_like(run, out)


@pytest.mark.parametrize("size", [pytest.param(n, marks=() if n == 48 else LONG) for n in (4, 12, 24, 48, 64, 96, 128)])
def test_a_disk_that_fills_is_said_and_the_rest_done_when_there_is_room(size, run, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size={size}k") as disk:
        verdict = refused(run, disk / "out")
        judge("disk", verdict, Case(name=str(size), make=fifo, says=os.strerror(errno.ENOSPC)))
        expect_sound(run, disk / "out")
        remount(disk, "size=64m")
        expect_mended(run, disk / "out")


@pytest.mark.parametrize("limit", [pytest.param(n, marks=() if n == 2000 else LONG) for n in (300, 2000, 6000, 12_000)])
def test_a_limit_of_a_files_size_is_said(limit, run, judge, tmp_path):
    with limited(limit):
        verdict = refused(run, tmp_path / "out")
    judge("disk", verdict, Case(name=str(limit), make=fifo, says=os.strerror(errno.EFBIG)))
    expect_sound(run, tmp_path / "out")
    expect_mended(run, tmp_path / "out")


@pytest.mark.parametrize("begun", [False, pytest.param(True, marks=LONG)])
def test_a_read_only_disk_is_one_line(begun, run, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=64m") as disk:
        if begun:
            run.copy(disk / "out")
            shutil.rmtree(disk / "out/rows")
        remount(disk, "ro")
        verdict = refused(run, disk / "out", lines=2)
        judge("disk", verdict, Case(name=str(begun), make=fifo, says="Read-only file system"))
        remount(disk, "rw")
        expect_mended(run, disk / "out")


def at_row(number, action, monkeypatch):
    """Do something before a row of this number is written."""
    add, added = RowStore.add, []

    def adding(store, rows):
        added.extend(rows)
        if rows and len(added) == number:
            action()
        add(store, rows)

    monkeypatch.setattr(RowStore, "add", adding)


@pytest.mark.parametrize("number", [pytest.param(1, marks=LONG), 3, pytest.param(6, marks=LONG)])
def test_a_folder_that_vanishes_loses_only_what_was_in_it_and_that_is_said(number, run, judge, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        at_row(number, lambda: shutil.rmtree(out), patch)
        verdict = refused(run, out)
    judge("disk", verdict, Case(name=str(number), make=fifo, says="run the same command again"))
    expect_sound(run, out)
    assert len(every_row(out)) <= len(rows_of(run.whole)) - number + 1
    expect_mended(run, out)


def test_a_folder_that_becomes_a_file_is_said(run, judge, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def replace():
        shutil.rmtree(out)
        out.write_text("a file")

    with monkeypatch.context() as patch:
        at_row(3, replace, patch)
        verdict = refused(run, out)
    judge("disk", verdict, Case(name="a file", make=fifo, says=str(out)))
    assert out.read_text() == "a file"
    out.unlink()
    expect_mended(run, out)


def test_a_disk_that_becomes_read_only_keeps_what_is_done(run, judge, tmp_path, monkeypatch):
    with mounted(tmp_path / "disk", "size=64m") as disk:
        with monkeypatch.context() as patch:
            at_row(3, lambda: remount(disk, "ro"), patch)
            verdict = refused(run, disk / "out")
        judge("disk", verdict, Case(name="read-only", make=fifo, says="Read-only file system"))
        assert len(rows_of(disk / "out")) == 2
        remount(disk, "rw")
        expect_mended(run, disk / "out")


@pytest.mark.parametrize("year", [pytest.param(1970, marks=LONG), 2100])
def test_after_a_clock_was_set_nothing_is_made_again(year, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    for path in out.rglob("*"):
        os.utime(path, ((year - 1970) * YEAR,) * 2)
    verdict = run.into(out)
    judge("disk", verdict, Case(name=str(year), make=fifo, expected="right", says=" 0 of 6 rows to make"))
    expect_like(run, out)


def test_a_clock_that_goes_backward_harms_no_run(run, judge, tmp_path, monkeypatch):
    hours = iter(range(10**6))
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start - 3600 * next(hours))
    judge("disk", again(run, tmp_path / "out"), Case(name="backward", make=fifo, expected="right", says="^$"))
    monkeypatch.undo()
    expect_mended(run, tmp_path / "out")


@pytest.mark.parametrize("place", ["rows", "maps.zarr", pytest.param("", marks=LONG)])
def test_drafts_are_swept_when_nobody_writes_them_whatever_their_time(place, run, judge, tmp_path):
    """One is from 1970, one from 2100; while a process writes them they stay, and when it is killed they go."""
    out = run.copy(tmp_path / "out")
    writers, names = [], []
    for year in (1970, 2100):
        ours, theirs = forkserver.Pipe(duplex=False)
        writers.append(
            forkserver.Process(target=write_and_wait, args=(out / place / "more.parquet", theirs), daemon=True)
        )
        writers[-1].start()
        names.append(out / place / ours.recv())
        os.utime(names[-1], ((year - 1970) * YEAR,) * 2)
    judge("disk", again(run, out), Case(name=place, make=fifo, expected="right", says="^$"))
    assert [name.exists() for name in names] == [True, True]
    for writer in writers:
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
    expect_mended(run, out)
