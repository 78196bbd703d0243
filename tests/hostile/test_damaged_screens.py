"""A folder of `screen` that is damaged: scores, tables and pages are right afterwards, or one line says what is not."""

import pytest
from crews import pictures
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
from hostile.outputs import expect_same, made, quick_panels, results, some_in_short
from hostile.verdicts import Case

TABLES = ("screen.csv", "screen.parquet", "screen.json", "screen.png")
MAPS, JSON = "images/0000.npz", "images/0000.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two images and two of reference."""
    folder = tmp_path_factory.mktemp("screen")
    known = pictures(folder / "known", 2)
    with quick_panels():
        yield made(folder, "screen", "--reference", known, "--masks", 40, "--repeats", 2)


def case(name, file, damage, says="^$", expected="right"):
    return Case(name=f"{file} {name}", make=lambda out: damage(out / file), expected=expected, says=says)


def again(name, file, damage):
    return case(name, file, damage, says=rf"^repeat-xai: \S*/{file}: (damaged|missing), made again\n")


def below_zero(values):
    values[5, 5] = -1
    return values


RIGHT = [
    *(case("deleted", name, deleted) for name in TABLES),
    *(case("cut to a half", name, cut(0.5)) for name in TABLES),
    *(case("of zeros", name, zeroed) for name in TABLES),
    again("with a bit flipped", MAPS, flipped(0.6)),
    again("deleted", "reference/0001.npz", deleted),
    again("without votes and with uncertainty unknown", MAPS, lambda path: unknown(path)),
    again("with uncertainty below zero", MAPS, with_map("uncertainty", below_zero)),
    again("that are infinite", MAPS, with_map("uncertainty", lambda values: values + float("inf"))),
    again("without pixels", MAPS, with_map("importance", lambda values: values[:0])),
    again("of another image", "reference/0000.json", with_fields(image={"sha256": "0" * 64})),
    again("of a bare number", JSON, filled(b"1")),
    again("cut to a half", "reference/0000.png", cut(0.5)),
    Case(name="reference deleted", make=lambda out: emptied(out / "reference"), expected="right", says="^$"),
]
STOPPED = [
    *(
        case(f"{what} in its place", name, SPECIAL[what], says=rf"{name}: is not a regular file", expected="refused")
        for name, what in zip(TABLES, ("a FIFO", "a folder", "a link to itself", "an endless device"), strict=True)
    ),
    case("a FIFO in its place", "index.html", SPECIAL["a FIFO"], says="is a page of your own", expected="refused"),
    case("that is the user's own", "screen.png", own_picture, says="is a picture of your own", expected="refused"),
    *(
        case("is a file", name, lambda path: (emptied(path), path.write_text("")), says="cannot be", expected="refused")
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


@pytest.mark.parametrize("case", some_in_short(RIGHT, 3))
def test_scores_and_tables_are_right_afterwards(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    judge("output folders", run.into(out), case)
    expect_same(out, run.whole)
    assert set(results(out)) == set(results(run.whole))


@pytest.mark.parametrize("case", some_in_short(STOPPED, 3))
def test_what_is_not_ours_is_refused_in_a_line_and_left_alone(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    file = out / case.name.split()[0]
    before = (file.lstat().st_ino, file.lstat().st_mode)
    judge("output folders", run.into(out), case)
    assert (file.lstat().st_ino, file.lstat().st_mode) == before
    expect_same(out, run.whole, names={"images/0000.npz", "images/0001.npz"} & set(results(out)))


def test_one_image_that_is_refused_is_left_out_and_the_others_are_ranked(run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    SPECIAL["a FIFO"](out / MAPS)
    case = Case(name="FIFO", make=SPECIAL["a FIFO"], says=r"images/0000\.npz: is not a regular file")
    judge("output folders", run.into(out), case)
    rows = (out / "screen.csv").read_text().splitlines()
    assert len(rows) == 3
    assert "0001.png" in rows[1]
    assert "0000.npz: is not a regular file" in rows[2]
