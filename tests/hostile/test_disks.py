"""Disks that are full or read-only, folders that vanish, clocks that are set: said in a line, and nothing is spoilt."""

import errno
import os
import shutil
import time
from contextlib import contextmanager

import pytest
from hostile.damages import fifo
from hostile.disks import limited, mounted, remount
from hostile.outputs import Run, expect_same, made, quick_panels, results, whole
from hostile.verdicts import Case, Verdict, drafts
from small_work import pictures

import repeat_xai.output.results_folder
from repeat_xai.methods import provenance

PHOTOS = 3
FULL = "No space left on device"
LONG = pytest.mark.hostile


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_panels():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("undisturbed"))


class Runs(dict):
    """What an undisturbed run of each command leaves, made when it is asked for."""

    def __init__(self, folder):
        self.folder = folder

    def __missing__(self, command):
        exact = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        options = {
            "explain": lambda: ("explain", *exact),
            "methods": lambda: ("explain", "--method", "repeat,relax", *exact),
            "screen": lambda: (
                *("screen", "--masks", 40, "--repeats", 2),
                *("--reference", pictures(self.folder / "known", 1)),
            ),
        }
        self[command] = made(self.folder / command, *options[command](), photos=PHOTOS)
        return self[command]


def expect_sound(folder):
    """Every file that is there can be read to its end, and no draft is left."""
    assert [path for path in results(folder).values() if not whole(path)] == []
    assert drafts(folder) == []


def expect_mended(run: Run, out):
    """The same command does what is missing when it can."""
    assert run.into(out).kind == "right"
    expect_same(out, run.whole)


SIZES = {
    "explain": ("8k", "20k", "28k", "44k", "64k", "76k", "100k", "124k"),
    "methods": ("20k", "84k", "160k", "172k"),
    "screen": ("12k", "40k", "84k", "100k", "112k", "120k"),
}
"""From one in which the first maps do not fit to one in which all but the page does."""


@pytest.mark.parametrize(
    ("command", "size"),
    [
        pytest.param(command, size, marks=() if size == "28k" else LONG)
        for command, sizes in SIZES.items()
        for size in sizes
    ],
)
def test_a_disk_that_fills_is_said_and_the_rest_done_when_there_is_room(command, size, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size={size}") as disk:
        verdict = runs[command].into(disk / "out", lines=3 * PHOTOS + 1)
        judge("disk", verdict, Case(name=size, make=fifo, says=FULL))
        expect_sound(disk / "out")
        remount(disk, "size=16m")
        expect_mended(runs[command], disk / "out")


@pytest.mark.parametrize("inodes", [pytest.param(2, marks=LONG), 4, *(pytest.param(n, marks=LONG) for n in (6, 9))])
def test_a_disk_that_takes_no_more_files_is_said(inodes, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size=16m,nr_inodes={inodes}") as disk:
        verdict = runs["explain"].into(disk / "out", lines=PHOTOS + 1)
        judge("disk", verdict, Case(name=str(inodes), make=fifo, says=FULL))
        remount(disk, "nr_inodes=1000")
        expect_mended(runs["explain"], disk / "out")


@pytest.mark.parametrize("limit", [500, *(pytest.param(n, marks=LONG) for n in (1500, 4000, 12_000, 40_000))])
def test_a_limit_of_a_files_size_is_said(limit, runs, judge, tmp_path):
    with limited(limit):
        verdict = runs["explain"].into(tmp_path / "out", lines=PHOTOS + 1)
    judge("disk", verdict, Case(name=str(limit), make=fifo, says=os.strerror(errno.EFBIG)))
    expect_sound(tmp_path / "out")
    expect_mended(runs["explain"], tmp_path / "out")


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG)])
@pytest.mark.parametrize("begun", [False, pytest.param(True, marks=LONG)])
def test_a_read_only_disk_is_one_line(command, begun, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=16m") as disk:
        if begun:
            runs[command].copy(disk / "out")
        remount(disk, "ro")
        judge("disk", runs[command].into(disk / "out"), Case(name=command, make=fifo, says="Read-only file system"))
        remount(disk, "rw")
        expect_mended(runs[command], disk / "out")


@contextmanager
def at_panel(number, action):
    """Do something when so many panels have been drawn, before the next one is written."""
    drawn, draw = [], repeat_xai.output.results_folder.panel

    def panel(*arguments, **options):
        drawn.append(number)
        if len(drawn) == number:
            action()
        return draw(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeat_xai.output.results_folder, "panel", panel)
        yield


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG)])
def test_a_disk_that_becomes_read_only_is_said_of_every_image(command, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=16m") as disk:
        with at_panel(2, lambda: remount(disk, "ro")):
            verdict = runs[command].into(disk / "out", lines=2 * PHOTOS)
        judge("disk", verdict, Case(name=command, make=fifo, says="Read-only file system"))
        expect_sound(disk / "out")
        remount(disk, "rw")
        expect_mended(runs[command], disk / "out")


def replaced_by_file(folder):
    shutil.rmtree(folder)
    folder.write_text("a file")


@pytest.mark.parametrize("command", ["explain", *(pytest.param(name, marks=LONG) for name in ("methods", "screen"))])
@pytest.mark.parametrize("number", [pytest.param(1, marks=LONG), 2, pytest.param(PHOTOS, marks=LONG)])
def test_a_folder_that_vanishes_is_said(command, number, runs, judge, tmp_path):
    out = tmp_path / "out"
    with at_panel(number, lambda: shutil.rmtree(out)):
        verdict = runs[command].into(out, lines=2 * PHOTOS + 1)
    judge("disk", verdict, Case(name=f"{command} {number}", make=fifo, says="run the same command again"))
    expect_sound(out)
    expect_mended(runs[command], out)


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG)])
def test_a_folder_that_becomes_a_file_is_said(command, runs, judge, tmp_path):
    out = tmp_path / "out"
    with at_panel(2, lambda: replaced_by_file(out)):
        verdict = runs[command].into(out, lines=2 * PHOTOS + 1)
    judge("disk", verdict, Case(name=command, make=fifo, says="cannot be written"))
    assert out.read_text() == "a file"
    out.unlink()
    expect_mended(runs[command], out)


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG)])
@pytest.mark.parametrize("year", [pytest.param(1970, marks=LONG), 2999])
def test_after_a_clock_was_set_nothing_is_made_again(command, year, runs, judge, tmp_path, monkeypatch):
    out, before = tmp_path / "out", time.gmtime
    with monkeypatch.context() as clock:
        clock.setattr(provenance.time, "gmtime", lambda: time.strptime(f"{year}", "%Y"))
        assert runs[command].into(out).kind == "right"
    assert time.gmtime is before
    when = (year - 1970) * 365 * 24 * 3600
    for path in out.rglob("*"):
        os.utime(path, (when, when))
    found = {name: path.read_bytes() for name, path in results(out).items() if path.name[:4].isdigit()}
    verdict = runs[command].into(out)
    judge("disk", verdict, Case(name=str(year), make=fifo, expected="right", says="^$"))
    assert {name: path.read_bytes() for name, path in results(out).items() if name in found} == found
    assert any(f'"finished": "{year}' in content.decode() for name, content in found.items() if name.endswith(".json"))


def test_verdicts_of_a_full_disk_name_the_file_and_what_to_do(runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=28k") as disk:
        verdict = runs["explain"].into(disk / "out", lines=PHOTOS + 1)
    judge("disk", Verdict(verdict.kind, verdict.said))
    first = verdict.said.splitlines()[0]
    assert first.endswith(f"cannot be written ({FULL}); choose another folder")
