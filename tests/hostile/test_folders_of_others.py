"""Tests of folders of `explain` that contain the user's own files, wrong times, links and drafts."""

import os
import time

import PIL.Image
import pytest
from hostile.damages import (
    SPECIAL,
    cut,
    deleted,
    filled,
    flipped,
    link_to,
    moved_and_linked,
    own_picture,
    replaced,
    with_fields,
    zeroed,
)
from hostile.outputs import expect_same, in_both_parts, quick_panels, results, run_once, same_file
from hostile.verdicts import Case

from repeat_xai.files.atomic import MACHINE

RESULTS = ("0000.json", "0000.npz", "0000.png")
COMPARISON = "0000.comparison.png"
DRAFT = f".repeat-xai-draft-{MACHINE}-abcd1234"
TOMORROW = time.time() + 24 * 3600


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with quick_panels():
        options = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        yield run_once(tmp_path_factory.mktemp("explain"), "explain", *options)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder of a run with two methods, which has a comparison for each image."""
    with quick_panels():
        options = ("--method", "repeat,relax", "--estimator", "exact", "--masks", 20, "--repeats", 2)
        yield run_once(tmp_path_factory.mktemp("several"), "explain", *options)


def own_files(out, **contents):
    """Put the user's own files in place of the first image's results."""
    for name in RESULTS:
        (out / name).unlink()
    for suffix, content in contents.items():
        (out / f"0000.{suffix}").write_bytes(content)


OWN = {
    "a picture where our panel was": lambda out: own_picture(out / "0000.png"),
    "a picture in another format where our panel was": lambda out: PIL.Image.new("L", (9, 9)).save(
        out / "0000.png", format="GIF"
    ),
    "a picture too large to be opened where our panel was": lambda out: large_picture(out / "0000.png"),
    "a picture": lambda out: (own_files(out), own_picture(out / "0000.png")),
    "a damaged picture": lambda out: (own_files(out), own_picture(out / "0000.png"), cut(0.5)(out / "0000.png")),
    "notes called as our panel is": lambda out: own_files(out, png=b"my notes"),
    "JSON called as our provenance is": lambda out: own_files(out, json=b'{"labels": ["cat"]}'),
    "text called as our provenance is": lambda out: own_files(out, json=b"label: cat"),
    "an array called as our maps are": lambda out: own_files(out, npz=b"PK\x03\x04 an array"),
}


def large_picture(path):
    PIL.Image.new("1", (20_000, 20_000)).save(path, format="PNG")


@pytest.mark.parametrize("name", in_both_parts(OWN, 2))
def test_files_of_the_user_are_kept_and_results_get_other_names(name, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    OWN[name](out)
    before = {file: path.read_bytes() for file, path in results(out).items() if file.startswith("0000")}
    case = Case(name=name, make=OWN[name], expected="right", message="^$")
    judge("output folders", run.into(out), case)
    assert {file: path.read_bytes() for file, path in results(out).items() if file in before} == before
    for file in RESULTS:
        same_file(out / file.replace("0000", "0000-2"), run.whole / file)
    assert run.into(out) == ("right", "")
    assert "0000-3.png" not in results(out)


def in_the_future(out):
    for path in out.iterdir():
        os.utime(path, (TOMORROW, TOMORROW))


def in_the_past(out):
    for path in out.iterdir():
        os.utime(path, (0, 0))


def linked_folder(out):
    out.rename(out.with_name("elsewhere"))
    out.symlink_to(out.with_name("elsewhere"))


NOT_MADE_AGAIN = {
    "files of tomorrow": in_the_future,
    "files of 1970": in_the_past,
    "an image finished in the year 2999": lambda out: with_fields(finished="2999-01-01T00:00:00Z")(out / RESULTS[0]),
    "provenance behind a link": lambda out: moved_and_linked(out / RESULTS[0]),
    "maps behind a link": lambda out: moved_and_linked(out / RESULTS[1]),
    "a panel behind a link": lambda out: moved_and_linked(out / RESULTS[2]),
    "a folder behind a link": linked_folder,
    "a draft of a killed run": lambda out: (out / f"{DRAFT}.npz").write_bytes(b"half"),
    "an empty draft of a killed run": lambda out: (out / f"{DRAFT}.png").write_bytes(b""),
    "fifty drafts of killed runs": lambda out: [(out / f"{DRAFT[:-2]}{n}").write_bytes(b"") for n in range(10, 60)],
}


@pytest.mark.parametrize("name", in_both_parts(NOT_MADE_AGAIN, 3))
def test_undamaged_results_are_not_made_again(name, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    NOT_MADE_AGAIN[name](out)
    before = {file: path.read_bytes() for file, path in results(out).items() if file in RESULTS}
    judge("output folders", run.into(out), Case(name=name, make=NOT_MADE_AGAIN[name], expected="right", message="^$"))
    assert {file: path.read_bytes() for file, path in results(out).items() if file in RESULTS} == before
    expect_same(out, run.whole)


def test_hidden_files_of_the_user_are_kept(run, tmp_path):
    out = run.copy(tmp_path / "out")
    own = (".notes", ".0000-abcdefgh.png", ".repeat-xai-draft-notes.png", ".repeat-xai-draft-0123456-abcd1234")
    for name in own:
        (out / name).write_text("mine")
    assert run.into(out) == ("right", "")
    assert [(out / name).read_text() for name in own] == ["mine"] * len(own)


COMPARISONS = {
    "deleted": deleted,
    "empty": cut(0),
    "cut to a half": cut(0.5),
    "of zeros": zeroed,
    "that is text": filled(b"no picture"),
    "with a bit flipped in its signature": replaced(b"Software\0repeat", b"Software\0repeau"),
    "with a bit flipped in the middle": flipped(0.5),
    "behind a link": moved_and_linked,
}


@pytest.mark.parametrize("name", in_both_parts(COMPARISONS, 3))
def test_a_damaged_comparison_is_drawn_again(name, several, judge, tmp_path):
    out = several.copy(tmp_path / "out")
    COMPARISONS[name](out / COMPARISON)
    judge("output folders", several.into(out), Case(name=name, make=COMPARISONS[name], expected="right", message="^$"))
    expect_same(out, several.whole)


def test_maps_of_one_method_of_several_are_made_again(several, judge, tmp_path):
    out = several.copy(tmp_path / "out")
    case = Case(
        name="relax", make=lambda path: flipped(0.5)(path), expected="right", message=r"relax/0001\.npz: damaged"
    )
    case.make(out / "relax" / "0001.npz")
    judge("output folders", several.into(out), case)
    expect_same(out, several.whole)


NO_COMPARISON = {
    "a FIFO": SPECIAL["a FIFO"],
    "a folder": SPECIAL["a folder"],
    "a picture of the user's own": own_picture,
}


@pytest.mark.parametrize("name", in_both_parts(NO_COMPARISON, 2))
def test_a_foreign_file_in_place_of_a_comparison_is_refused_and_the_rest_completed(name, several, judge, tmp_path):
    out = several.copy(tmp_path / "out")
    NO_COMPARISON[name](out / COMPARISON)
    before = (out / COMPARISON).lstat().st_ino
    for file in (*(f"repeat/{name}" for name in RESULTS), "index.html", "0001.comparison.png"):
        (out / file).unlink()
    case = Case(
        name=name, make=NO_COMPARISON[name], message=r"comparison\.png: is (not a regular file|a picture of your)"
    )
    judge("output folders", several.into(out), case)
    assert (out / COMPARISON).lstat().st_ino == before
    expect_same(out, several.whole, names=set(results(several.whole)) - {COMPARISON, "index.html"})
    assert "0000.png" in (out / "index.html").read_text()


def test_a_method_that_is_a_link_to_itself_is_refused(several, judge, tmp_path):
    out = several.copy(tmp_path / "out")
    (out / "relax").rename(tmp_path / "relax")
    link_to(None)(out / "relax")
    judge("output folders", several.into(out), Case(name="loop", make=link_to, message=r"relax: cannot be written to"))
