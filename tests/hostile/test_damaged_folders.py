"""Tests that damaged or missing results of `explain` are made again with a warning, and that foreign files are kept."""

import shutil

import pytest
from hostile.damages import (
    SPECIAL,
    bomb,
    cut,
    deleted,
    filled,
    flipped,
    replaced,
    with_fields,
    with_map,
    with_parts,
    with_text,
    with_wrong_checksum,
    zeroed,
)
from hostile.outputs import expect_same, in_both_parts, quick_panels, results, run_once
from hostile.verdicts import Case

JSON, MAPS, PANEL, PAGE = "0000.json", "0000.npz", "0000.png", "index.html"
FILES = {"provenance": JSON, "maps": MAPS, "panel": PANEL}
DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


def case(name, file, damage, *, message=None, expected="right"):
    """Return a case that damages one file of the folder; by default a line says that it was made again."""
    line = rf"^repeat-xai: \S*/{file}: (damaged|missing), made again\n" if message is None else message
    return Case(name=name, make=lambda out: damage(out / file), expected=expected, message=line)


def of_provenance(name, damage, **options):
    return case(f"provenance {name}", JSON, damage, **options)


def of_maps(name, damage, **options):
    return case(f"maps {name}", MAPS, damage, **options)


def of_panel(name, damage, **options):
    return case(f"panel {name}", PANEL, damage, **options)


def of_page(name, damage, **options):
    return case(f"page {name}", PAGE, damage, message="^$", **options)


def infinite(values):
    values[0, 0] = float("inf")
    return values


def nested(levels):
    inner = {}
    for _ in range(levels):
        inner = {"in": inner}
    return inner


def all_of(*damages):
    """Return a function that damages several files, given as pairs of a file and a damage."""
    return lambda out: [damage(out / file) for file, damage in damages]


def exchanged(suffix):
    """Return a function that exchanges the files of the two images."""

    def damage(path):
        other, aside = path.with_name(f"0001{suffix}"), path.with_name("aside")
        path.rename(aside)
        other.rename(path)
        aside.rename(other)

    return damage


RIGHT = [
    of_provenance("deleted", deleted),
    of_provenance("empty", cut(0)),
    of_provenance("cut to a half", cut(0.5)),
    of_provenance("of zeros", zeroed),
    of_provenance("not UTF-8", filled(b'{"a": "\xff\xfe"}')),
    of_provenance("in UTF-16", filled('{"a": 1}'.encode("utf-16"))),
    of_provenance("100,000 deep", filled(DEEP)),
    of_provenance("an empty object", filled(b"{}")),
    of_provenance("a list", filled(b"[1, 2]")),
    of_provenance("of three megabytes", filled(b'{"a": "' + b"x" * 3_000_000 + b'"}')),
    of_provenance("with another digest", replaced(b'"sha256": "', b'"sha256": "0')),
    of_provenance("with another seed", with_fields(seed=1)),
    of_provenance("without encoder calls", with_fields(encoder_calls=...)),
    of_provenance("with encoder calls in words", with_fields(encoder_calls="many")),
    of_provenance("that took no number of seconds", with_fields(seconds=None)),
    of_provenance("that took for ever", with_fields(seconds=float("inf"))),
    of_provenance("without a level", with_fields(level=...)),
    of_provenance("whose image is a list", with_fields(image=[1])),
    of_provenance("whose method is a word", with_fields(method="repeat")),
    of_provenance("with a field more", with_fields(pool={"masks": 5})),
    of_provenance("with a field 500 deep", with_fields(more=nested(500))),
    of_provenance("with one letter more of how it ran", replaced(b'"runtime": "its', b'"runtime": "its!')),
    of_provenance("with one letter of its device changed", replaced(b'"device": "cpu', b'"device": "cpv')),
    of_maps("deleted", deleted),
    of_maps("with a bit flipped at the beginning", flipped(0.01)),
    of_maps("with a bit flipped in the middle", flipped(0.5)),
    of_maps("with a bit flipped at the end", flipped(0.995)),
    of_maps("with a wrong checksum", with_wrong_checksum),
    of_maps("cut to a half", cut(0.5)),
    of_maps("empty", cut(0)),
    of_maps("of zeros", zeroed),
    of_maps("that are infinite", with_map("importance", infinite)),
    of_maps("in one row", with_map("uncertainty", lambda values: values.ravel())),
    of_maps("of different shapes", with_map("vote_share", lambda values: values[:9].copy())),
    of_maps("in double precision", with_map("importance", lambda values: values.astype("f8"))),
    of_maps("without uncertainty", with_parts(uncertainty=...)),
    of_maps("whose uncertainty nobody knows", lambda path: nobody_knows(path)),
    of_maps("that unpack to 400 MB", bomb(10_240)),
    of_maps("whose photo has no size", with_text("photo", size=[0, 0])),
    case("maps of another photo", MAPS, exchanged(".npz"), message=r"json: damaged, made again\n"),
    case(
        "maps whose provenance differs", MAPS, with_text("provenance", seed=7), message=r"json: damaged, made again\n"
    ),
    of_panel("deleted", deleted),
    of_panel("with a bit flipped in its signature", replaced(b"Software\0repeat", b"Software\0repeau")),
    of_panel("with a bit flipped in its size", flipped(0.0008)),
    of_panel("with a bit flipped in the middle", flipped(0.5)),
    of_panel("with a bit flipped at the end", flipped(0.999)),
    of_panel("cut to a half", cut(0.5)),
    of_panel("without its end", lambda path: path.write_bytes(path.read_bytes()[:-12])),
    of_panel("with something behind its end", lambda path: path.write_bytes(path.read_bytes() + b"more")),
    of_panel("empty", cut(0)),
    of_panel("of zeros", zeroed),
    of_panel("that is text", filled(b"no picture")),
    of_panel("of another photo", exchanged(".png")),
    of_page("deleted", deleted),
    of_page("empty", cut(0)),
    of_page("cut after a thousand bytes", lambda path: path.write_bytes(path.read_bytes()[:1000])),
    of_page("with a bit flipped in the middle", flipped(0.5)),
    Case(
        name="everything empty", make=all_of(*((f, cut(0)) for f in FILES.values())), expected="right", message="json: "
    ),
    Case(
        name="maps and panel deleted",
        make=all_of((MAPS, deleted), (PANEL, deleted)),
        expected="right",
        message=r"0000\.npz: missing, made again",
    ),
    Case(
        name="provenance and panel damaged",
        make=all_of((JSON, cut(0.5)), (PANEL, flipped(0.5))),
        expected="right",
        message=r"0000\.json: damaged, made again",
    ),
    Case(
        name="maps and panel damaged",
        make=all_of((MAPS, flipped(0.5)), (PANEL, zeroed)),
        expected="right",
        message=r"0000\.npz: damaged, made again",
    ),
    Case(name="one image's files deleted", make=all_of(*((f, deleted) for f in FILES.values())), expected="right"),
    Case(name="the folder deleted", make=shutil.rmtree, expected="right", message="^$"),
]
LEFT_ALONE = [
    case(f"{what} {name} in its place", FILES[what], SPECIAL[name], message="is not a regular file", expected="refused")
    for what, names in {
        "provenance": SPECIAL,
        "maps": ("a FIFO", "a folder", "an endless device"),
        "panel": ("a FIFO", "a socket", "a link to nothing"),
    }.items()
    for name in names
]
STOPPED = [
    case(f"page {name} in its place", PAGE, damage, message="index.html: is a page of your own", expected="refused")
    for name, damage in {
        **{name: SPECIAL[name] for name in ("a FIFO", "a folder", "an endless device", "a link to itself")},
        "text": filled(b"no page"),
        "a page of the user's own": filled(b"<!doctype html><title>mine</title>"),
        "our page with its first line damaged": replaced(b"generator", b"generatos"),
    }.items()
]


def nobody_knows(path):
    with_parts(vote_share=...)(path)
    with_map("uncertainty", lambda values: values * float("nan"))(path)


def identities(out):
    """Return identity, kind and time of each file in place of the first image's results."""
    files = [(path, path.lstat()) for path in out.glob("0000.*")]
    return {path: (status.st_ino, status.st_mode, status.st_mtime_ns, status.st_size) for path, status in files}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with quick_panels():
        options = ("--estimator", "exact", "--masks", 20, "--repeats", 2)
        yield run_once(tmp_path_factory.mktemp("explain"), "explain", *options)


@pytest.mark.parametrize("case", in_both_parts(RIGHT, 2))
def test_damaged_results_are_made_again_with_a_warning(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    verdict = run.into(out)
    judge("output folders", verdict, case)
    expect_same(out, run.whole)
    assert set(results(out)) == set(results(run.whole))
    assert run.into(out) == ("right", "")


@pytest.mark.parametrize("case", in_both_parts(LEFT_ALONE, 3))
def test_irregular_files_are_refused_and_the_other_image_is_explained(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    for other in out.glob("0001.*"):
        other.unlink()
    before = identities(out)
    judge("output folders", run.into(out), case)
    assert identities(out) == before
    expect_same(out, run.whole, names={f"0001{suffix}" for suffix in (".json", ".npz", ".png")})
    assert "0001.png" in (out / PAGE).read_text()


@pytest.mark.parametrize("case", in_both_parts(STOPPED, 2))
def test_a_page_of_the_user_stops_the_run_before_it_begins(case, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    case.make(out)
    (out / JSON).unlink()
    before = sorted(out.iterdir())
    judge("output folders", run.into(out), case)
    assert sorted(out.iterdir()) == before
