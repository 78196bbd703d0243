"""Tests that a damaged folder of `screen` has right scores, tables and pages after another run, or gives one line."""

import pytest
from hostile.damages import (
    SPECIAL,
    cut,
    deleted,
    filled,
    flipped,
    own_picture,
    with_fields,
    with_map,
    with_parts,
    zeroed,
)
from hostile.outputs import expect_same, in_both_parts, quick_panels, results, run_once
from hostile.verdicts import Case
from small_work import pictures

TABLES = ("screen.csv", "screen.parquet", "screen.json", "screen.png")
MAPS, JSON = "images/0000.npz", "images/0000.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run on two images, with two of reference."""
    folder = tmp_path_factory.mktemp("screen")
    known = pictures(folder / "known", 2)
    with quick_panels():
        yield run_once(folder, "screen", "--known", known, "--masks", 40, "--repeats", 2)


def case(name, file, damage, message="^$", expected="right"):
    return Case(name=f"{file} {name}", make=lambda out: damage(out / file), expected=expected, message=message)


def remade(name, file, damage):
    return case(name, file, damage, message=rf"^repeat-xai: \S*/{file}: (damaged|missing), made again\n")


def below_zero(values):
    values[5, 5] = -1
    return values


RIGHT = [
    *(case("deleted", name, deleted) for name in TABLES),
    *(case("cut to a half", name, cut(0.5)) for name in TABLES),
    *(case("of zeros", name, zeroed) for name in TABLES),
    remade("with a bit flipped", MAPS, flipped(0.6)),
    remade("deleted", "reference/0001.npz", deleted),
    remade("without votes and with uncertainty unknown", MAPS, lambda path: unknown(path)),
    remade("with uncertainty below zero", MAPS, with_map("uncertainty", below_zero)),
    remade("that are infinite", MAPS, with_map("uncertainty", lambda values: values + float("inf"))),
    remade("without pixels", MAPS, with_map("importance", lambda values: values[:0])),
    remade("of another image", "reference/0000.json", with_fields(image={"sha256": "0" * 64})),
    remade("of a bare number", JSON, filled(b"1")),
    remade("cut to a half", "reference/0000.png", cut(0.5)),
    Case(name="reference deleted", make=lambda out: emptied(out / "reference"), expected="right", message="^$"),
]
STOPPED = [
    *(
        case(f"{what} in its place", name, SPECIAL[what], message=rf"{name}: is not a regular file", expected="refused")
        for name, what in zip(TABLES, ("a FIFO", "a folder", "a link to itself", "an endless device"), strict=True)
    ),
    case("a FIFO in its place", "index.html", SPECIAL["a FIFO"], message="is a page of your own", expected="refused"),
    case("that is the user's own", "screen.png", own_picture, message="is a picture of your own", expected="refused"),
    *(
        case(
            "is a file",
            name,
            lambda path: (emptied(path), path.write_text("")),
            message="cannot be",
            expected="refused",
        )
        for name in ("images", "reference")
    ),
]


def unknown(path):
    with_parts(vote_share=...)(path)
    with_map("uncertainty", lambda values: values * float("nan"))(path)


def emptied(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize("case", in_both_parts(RIGHT, 3))
def test_scores_and_tables_are_right_after_a_second_run(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    judge("output folders", run.into(out), case)
    expect_same(out, run.whole)
    assert set(results(out)) == set(results(run.whole))


@pytest.mark.parametrize("case", in_both_parts(STOPPED, 3))
def test_files_of_the_user_are_refused_in_one_line_and_kept(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    file = out / case.name.split()[0]
    before = (file.lstat().st_ino, file.lstat().st_mode)
    judge("output folders", run.into(out), case)
    assert (file.lstat().st_ino, file.lstat().st_mode) == before
    expect_same(out, run.whole, names={"images/0000.npz", "images/0001.npz"} & set(results(out)))


def test_a_refused_image_is_left_out_and_the_others_are_ranked(run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    SPECIAL["a FIFO"](out / MAPS)
    case = Case(name="FIFO", make=SPECIAL["a FIFO"], message=r"images/0000\.npz: is not a regular file")
    judge("output folders", run.into(out), case)
    rows = (out / "screen.csv").read_text().splitlines()
    assert len(rows) == 3
    assert "0001.png" in rows[1]
    assert "0000.npz: is not a regular file" in rows[2]
