"""Tests that damaged or duplicated rows and maps of `evaluate` are named in one line or made again."""

import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import damages, row_files
from hostile.damages import SPECIAL, cut, deleted, filled, flipped, zeroed
from hostile.evaluations import evaluate_once, expect_same_results, rows_of, run_again
from hostile.kills import Command
from hostile.outputs import verdict_of_main
from hostile.verdicts import Case, Verdict, time_limit
from stores import row

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore

LONG_PART = pytest.mark.hostile
DAMAGED = r"rows/\w+\.parquet: (damaged \(|holds no rows of repeat-xai).*move it away and run again"
FLIPS = 300


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return evaluate_once(tmp_path_factory.mktemp("stores"), "--maps", photos=3)


REFUSED = {
    "nothing": filled(b""),
    "four bytes": filled(b"PAR1"),
    "the head and tail alone": filled(b"PAR1\0\0\0\0PAR1"),
    "text": filled(b"key,scores\n0,1\n"),
    "another format of Arrow": filled(pa.BufferOutputStream().getvalue().to_pybytes() + b"ARROW1\0\0"),
    "zeros": zeroed,
    **{f"cut at {share:.0%}": cut(share) for share in (0.02, 0.3, 0.6, 0.9, 0.99, 0.999)},
    "a bit flipped in the last byte": flipped(1),
    "a footer of 4 GB": row_files.with_footer_length(2**32 - 1),
    "a footer of nothing": row_files.with_footer_length(0),
    "a footer of zeros": row_files.with_footer(lambda footer: bytes(len(footer))),
    "a footer of noise": row_files.with_footer(lambda footer: random.Random(0).randbytes(len(footer))),
    "a row group of 2^62 rows": row_files.announcing_rows,
    "rows of another table": lambda path: pq.write_table(pa.table({"a": [1]}), path),
    "another table with our mark": row_files.changed(
        lambda table: pa.table({"a": [1]}).replace_schema_metadata(table.schema.metadata)
    ),
    "another column": row_files.changed(row_files.with_extra_column),
    **{f"no {name}": row_files.without(name) for name in ("key", "scores", "failure", "code", "setting")},
    "no mark": row_files.changed(lambda table: table.replace_schema_metadata({})),
    "a mark that is no number": row_files.of_version(b"one"),
    "a mark that is not Unicode": row_files.of_version(b"\xff"),
    "keys that are numbers": row_files.with_column("key", 1, kind=pa.int64()),
    "keys that are NaN": row_files.with_column("key", float("nan"), kind=pa.float64()),
    "keys that are bytes": row_files.with_column("key", b"0", kind=pa.binary()),
    "scores that are text": row_files.with_column("scores", "many", kind=pa.string()),
    "codes of lists": row_files.with_column("code", [[1.0]], kind=pa.list_(pa.list_(pa.float64()))),
    "seconds of half precision": row_files.with_column("seconds", 1.0, kind=pa.float32()),
    "a seed below zero": row_files.with_column("seed", -1, kind=pa.int64()),
    **{f"a null among {name}": row_files.with_one_null(name) for name in ("key", "scores", "code", "calls", "setting")},
    "a null among the values of a code": row_files.with_column("code", [None, 1.0]),
    "text that is not Unicode": row_files.not_unicode,
    "a bomb": row_files.bomb,
}
"""Contents of a file that is not a valid file of rows; the user is told which file to move away."""
QUICK = {"nothing", "cut at 60%", "a row group of 2^62 rows", "keys that are NaN", "a null among scores"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else LONG_PART) for n in REFUSED])
def test_a_damaged_file_of_rows_is_named_in_one_line(name, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    (file,) = (out / "rows").glob("*.parquet")
    REFUSED[name](file)
    verdict = run_again(run, out)
    judge("stores", verdict, Case(name=name, make=deleted, message=DAMAGED))
    file.unlink()
    assert run_again(run, out).kind == "right"  # the rows are made from the stored maps
    expect_same_results(run, out)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=() if k == "a FIFO" else LONG_PART) for k in SPECIAL])
def test_irregular_files_among_the_rows_are_named_in_one_line(kind, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    SPECIAL[kind](out / "rows" / "more.parquet")
    message = r"rows/more\.parquet: is not a regular file"
    judge("stores", run_again(run, out), Case(name=kind, make=deleted, message=message))
    (out / "rows" / "more.parquet").rmdir() if kind == "a folder" else (out / "rows" / "more.parquet").unlink()
    assert run_again(run, out) == ("right", "")
    expect_same_results(run, out)


RIGHT = {
    "a file that is there twice": lambda path: shutil.copy(path, path.with_name("copy.parquet")),
    "rows three times in one file": row_files.doubled,
    "rows twice in two files": lambda path: (row_files.doubled(path), shutil.copy(path, path.with_name("a.parquet"))),
    "a file without rows": lambda path: row_files.without_rows(shutil.copy(path, path.with_name("none.parquet"))),
    "rows of other settings": lambda path: RowStore(path.parent).add([row("another", scores={"a": float("nan")})]),
    "a failure of every row": lambda path: RowStore(path.parent).add(
        [row(key, failure="out of memory") for key in pq.read_table(path)["key"].to_pylist()]
    ),
    "a hidden file": lambda path: (path.parent / ".hidden.parquet").write_bytes(b"half"),
    "a file of another name": lambda path: (path.parent / "notes.txt").write_text("mine"),
    "no rows": deleted,
    "no folder of rows": lambda path: shutil.rmtree(path.parent),
}
"""Changes of the stored rows that do no harm."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=LONG_PART if "twice" in n or "no " in n else ()) for n in RIGHT]
)
def test_duplicate_and_missing_rows_count_once_after_another_run(name, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    (file,) = (out / "rows").glob("*.parquet")
    RIGHT[name](file)
    judge("stores", run_again(run, out), Case(name=name, make=deleted, expected="right", message="^$"))
    for beside in ("hidden.parquet", "notes.txt"):
        (out / "rows" / beside).unlink(missing_ok=True)
        (out / "rows" / f".{beside}").unlink(missing_ok=True)
    if name == "rows of other settings":
        assert "another" in rows_of(out)
    else:
        assert rows_of(out) == rows_of(run.whole)
        RowStore(out / "rows").compact()
        expect_same_results(run, out)


def flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def refused(error):
    return Verdict("refused" if len(str(error).splitlines()) == 1 else "traceback", str(error))


@pytest.mark.parametrize("part", [pytest.param(part, marks=LONG_PART if part else ()) for part in range(10)])
def test_flipped_bits_in_a_file_of_rows_never_give_other_rows(part, run, judge, tmp_path):
    """A flipped bit that is not detected must leave every row unchanged."""
    expected = rows_of(run.whole)
    for number in range(FLIPS // 10):
        rng = random.Random(1000 * part + number)
        shutil.rmtree(tmp_path / "rows", ignore_errors=True)
        shutil.copytree(run.whole / "rows", tmp_path / "rows")
        (file,) = (tmp_path / "rows").glob("*.parquet")
        flip(file, rng)
        with time_limit(10):
            try:
                assert rows_of(tmp_path) == expected
            except OutputError as error:
                judge("stores", refused(error))
            else:
                judge("stores", Verdict("right"))


@pytest.mark.parametrize("part", [pytest.param(part, marks=LONG_PART if part else ()) for part in range(10)])
def test_flipped_bits_in_stored_maps_never_give_other_maps(part, run, judge, tmp_path):
    store = MapStore(run.copy(tmp_path / "out") / "maps.zarr")
    expected = {key: MapStore(run.whole / "maps.zarr").read(key) for key in rows_of(run.whole)}
    for number in range(FLIPS // 10):
        rng = random.Random(1000 * part + number)
        key = rng.choice(sorted(expected))
        file = store.url / key[:2] / key / rng.choice(("zarr.json", "c/0/0/0", "c/0/0/0"))
        whole = file.read_bytes()
        flip(file, rng)
        try:
            stored = store.read(key)
        except OutputError as error:
            judge("stores", refused(error))
        else:
            assert stored[1:] == expected[key][1:]
            assert {kind: values.tobytes() for kind, values in stored.maps.items()} == {
                kind: values.tobytes() for kind, values in expected[key].maps.items()
            }
            judge("stores", Verdict("right"))
        file.write_bytes(whole)


MAPS = {
    "a chunk cut": ("c/0/0/0", cut(0.5)),
    "a chunk of nothing": ("c/0/0/0", filled(b"")),
    "a chunk deleted": ("c/0/0/0", deleted),
    "a chunk of zeros": ("c/0/0/0", zeroed),
    "a chunk that is a FIFO": ("c/0/0/0", damages.fifo),
    "a chunk that is a folder": ("c/0/0/0", damages.folder),
    "a chunk that is a link to nothing": ("c/0/0/0", damages.link_to("nowhere")),
    "attributes deleted": ("zarr.json", deleted),
    "attributes cut": ("zarr.json", cut(0.5)),
    "attributes of a list": ("zarr.json", filled(b"[]")),
    "attributes nested deep": ("zarr.json", filled(b"[" * 100_000)),
    "attributes that are not Unicode": ("zarr.json", filled(b"\xff\xfe")),
    "attributes with a number of 5,000 digits": ("zarr.json", filled(b'{"shape": ' + b"9" * 5000 + b"}")),
    "attributes of another group": ("zarr.json", filled(b'{"zarr_format": 3, "node_type": "group"}')),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=LONG_PART if i % 4 else ()) for i, n in enumerate(MAPS)])
def test_damaged_maps_are_made_again(name, run, judge, tmp_path):
    out = run.copy(tmp_path / "out")
    place, damage = MAPS[name]
    key = sorted(rows_of(run.whole))[0]
    damage(out / "maps.zarr" / key[:2] / key / place)
    verdict = run_again(run, out)
    message = f"^(repeat-xai: .*maps of row {key} are damaged .*; made again)?$"
    judge("stores", verdict, Case(name=name, make=deleted, expected="right", message=message))
    expect_same_results(run, out)


def test_two_simultaneous_runs_leave_every_row_once(run, judge, tmp_path):
    arguments = (*run.command, "--out", tmp_path / "out")
    both = [Command(arguments, tmp_path / f"output{number}") for number in range(2)]
    for command in both:
        judge("stores", Verdict("right" if command.finish() == 0 else "traceback", command.output.read_text()))
        assert "Traceback" not in command.output.read_text()
    assert verdict_of_main(*arguments).kind == "right"
    expect_same_results(run, tmp_path / "out")
