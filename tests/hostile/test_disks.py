"""Tests of `explain` and `screen` on full or read-only disks, in folders that are removed, and with wrong clocks."""

import errno
import os
import shutil
import time
from contextlib import contextmanager

import pytest
from hostile.damages import fifo
from hostile.disks import file_size_limited, mounted, remount
from hostile.outputs import Run, expect_same, quick_panels, results, run_once, whole
from hostile.verdicts import Case, Verdict, drafts
from small_work import pictures

import repeat_xai.output.results_folder
from repeat_xai.methods import provenance

PHOTOS = 3
FULL = "No space left on device"
LONG_PART = pytest.mark.hostile


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_panels():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return UndisturbedRuns(tmp_path_factory.mktemp("undisturbed"))


class UndisturbedRuns(dict):
    """The folders of an undisturbed run of each command, made when first needed."""

    def __init__(self, folder):
        self.folder = folder

    def __missing__(self, command):
        exact = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        options = {
            "explain": lambda: ("explain", *exact),
            "methods": lambda: ("explain", "--method", "repeat,relax", *exact),
            "screen": lambda: (
                *("screen", "--masks", 40, "--repeats", 2),
                *("--known", pictures(self.folder / "known", 1)),
            ),
        }
        self[command] = run_once(self.folder / command, *options[command](), photos=PHOTOS)
        return self[command]


def expect_sound(folder):
    """Check that every file can be read to its end and that no draft is left."""
    assert [path for path in results(folder).values() if not whole(path)] == []
    assert drafts(folder) == []


def expect_mended(run: Run, out):
    """Check that another run of the same command completes the results."""
    assert run.into(out).kind == "right"
    expect_same(out, run.whole)


SIZES = {
    "explain": ("8k", "20k", "28k", "44k", "64k", "76k", "100k", "124k"),
    "methods": ("20k", "84k", "160k", "172k"),
    "screen": ("12k", "40k", "84k", "100k", "112k", "120k"),
}
"""Sizes from one on which the first maps do not fit to one on which everything but the page fits."""


@pytest.mark.parametrize(
    ("command", "size"),
    [
        pytest.param(command, size, marks=() if size == "28k" else LONG_PART)
        for command, sizes in SIZES.items()
        for size in sizes
    ],
)
def test_a_full_disk_gives_an_error_and_a_later_run_completes_the_results(command, size, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size={size}") as disk:
        verdict = runs[command].into(disk / "out", lines=3 * PHOTOS + 1)
        judge("disk", verdict, Case(name=size, make=fifo, message=FULL))
        expect_sound(disk / "out")
        remount(disk, "size=16m")
        expect_mended(runs[command], disk / "out")


@pytest.mark.parametrize(
    "inodes", [pytest.param(2, marks=LONG_PART), 4, *(pytest.param(n, marks=LONG_PART) for n in (6, 9))]
)
def test_a_disk_without_inodes_gives_an_error(inodes, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", f"size=16m,nr_inodes={inodes}") as disk:
        verdict = runs["explain"].into(disk / "out", lines=PHOTOS + 1)
        judge("disk", verdict, Case(name=str(inodes), make=fifo, message=FULL))
        remount(disk, "nr_inodes=1000")
        expect_mended(runs["explain"], disk / "out")


@pytest.mark.parametrize("limit", [500, *(pytest.param(n, marks=LONG_PART) for n in (1500, 4000, 12_000, 40_000))])
def test_a_limit_on_the_size_of_files_gives_an_error(limit, runs, judge, tmp_path):
    with file_size_limited(limit):
        verdict = runs["explain"].into(tmp_path / "out", lines=PHOTOS + 1)
    judge("disk", verdict, Case(name=str(limit), make=fifo, message=os.strerror(errno.EFBIG)))
    expect_sound(tmp_path / "out")
    expect_mended(runs["explain"], tmp_path / "out")


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG_PART)])
@pytest.mark.parametrize("has_results", [False, pytest.param(True, marks=LONG_PART)])
def test_a_read_only_disk_gives_one_line(command, has_results, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=16m") as disk:
        if has_results:
            runs[command].copy(disk / "out")
        remount(disk, "ro")
        judge("disk", runs[command].into(disk / "out"), Case(name=command, make=fifo, message="Read-only file system"))
        remount(disk, "rw")
        expect_mended(runs[command], disk / "out")


@contextmanager
def at_panel(number, action):
    """Call `action` when this number of panels has been drawn, before the next one is written."""
    drawn, draw = [], repeat_xai.output.results_folder.panel

    def panel(*arguments, **options):
        drawn.append(number)
        if len(drawn) == number:
            action()
        return draw(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeat_xai.output.results_folder, "panel", panel)
        yield


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG_PART)])
def test_a_disk_that_becomes_read_only_gives_an_error_for_every_image(command, runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=16m") as disk:
        with at_panel(2, lambda: remount(disk, "ro")):
            verdict = runs[command].into(disk / "out", lines=2 * PHOTOS)
        judge("disk", verdict, Case(name=command, make=fifo, message="Read-only file system"))
        expect_sound(disk / "out")
        remount(disk, "rw")
        expect_mended(runs[command], disk / "out")


def replaced_by_file(folder):
    shutil.rmtree(folder)
    folder.write_text("a file")


@pytest.mark.parametrize(
    "command", ["explain", *(pytest.param(name, marks=LONG_PART) for name in ("methods", "screen"))]
)
@pytest.mark.parametrize("number", [pytest.param(1, marks=LONG_PART), 2, pytest.param(PHOTOS, marks=LONG_PART)])
def test_a_folder_that_is_removed_gives_an_error(command, number, runs, judge, tmp_path):
    out = tmp_path / "out"
    with at_panel(number, lambda: shutil.rmtree(out)):
        verdict = runs[command].into(out, lines=2 * PHOTOS + 1)
    judge("disk", verdict, Case(name=f"{command} {number}", make=fifo, message="run the same command again"))
    expect_sound(out)
    expect_mended(runs[command], out)


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG_PART)])
def test_a_folder_that_becomes_a_file_gives_an_error(command, runs, judge, tmp_path):
    out = tmp_path / "out"
    with at_panel(2, lambda: replaced_by_file(out)):
        verdict = runs[command].into(out, lines=2 * PHOTOS + 1)
    judge("disk", verdict, Case(name=command, make=fifo, message="cannot be written"))
    assert out.read_text() == "a file"
    out.unlink()
    expect_mended(runs[command], out)


@pytest.mark.parametrize("command", ["explain", pytest.param("screen", marks=LONG_PART)])
@pytest.mark.parametrize("year", [pytest.param(1970, marks=LONG_PART), 2999])
def test_nothing_is_made_again_after_the_clock_was_changed(command, year, runs, judge, tmp_path, monkeypatch):
    out, before = tmp_path / "out", time.gmtime
    with monkeypatch.context() as clock:
        clock.setattr(provenance.time, "gmtime", lambda: time.strptime(f"{year}", "%Y"))
        assert runs[command].into(out).kind == "right"
    assert time.gmtime is before
    when = (year - 1970) * 365 * 24 * 3600
    for path in out.rglob("*"):
        os.utime(path, (when, when))
    before_run = {name: path.read_bytes() for name, path in results(out).items() if path.name[:4].isdigit()}
    verdict = runs[command].into(out)
    judge("disk", verdict, Case(name=str(year), make=fifo, expected="right", message="^$"))
    assert {name: path.read_bytes() for name, path in results(out).items() if name in before_run} == before_run
    assert any(
        f'"finished": "{year}' in content.decode() for name, content in before_run.items() if name.endswith(".json")
    )


def test_the_error_of_a_full_disk_names_the_file_and_the_remedy(runs, judge, tmp_path):
    with mounted(tmp_path / "disk", "size=28k") as disk:
        verdict = runs["explain"].into(disk / "out", lines=PHOTOS + 1)
    judge("disk", Verdict(verdict.kind, verdict.text))
    first = verdict.text.splitlines()[0]
    assert first.endswith(f"cannot be written ({FULL}); choose another folder")
