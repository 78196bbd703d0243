"""What `evaluate` leaves: rows, maps and tables, to be compared with those of a run that nobody disturbed."""

from hostile.outputs import Run
from hostile.verdicts import Verdict, drafts
from small_work import network, pictures
from stores import bits

from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import read_batches, rows_in

BESIDE = "rows to make"
"""How the line ends that says how much is to be done."""


def evaluated(folder, *options, photos, masks=16):
    """Make photos and an encoder in a folder, and run `evaluate` on them, undisturbed."""
    encoder, seen = network(folder).name, pictures(folder / "photos", photos)
    arguments = (
        *("evaluate", "--dataset", seen, "--encoder", encoder, "--protocol", "encoder", "--device", "cpu"),
        *("--methods", "repeat,relax", "--masks", str(masks), "--repeats", "2", *options),
    )
    run = Run(arguments, folder / "whole")
    verdict = run.into(run.whole, lines=2)
    assert verdict.kind == "right", verdict.said
    return run


def again(run, out):
    """Run the command into a folder, and return what it says beside how much is to be done."""
    verdict = run.into(out, lines=2)
    lines = [line for line in verdict.said.splitlines() if not line.endswith(BESIDE)]
    assert len(lines) <= 1, lines
    return Verdict(verdict.kind, "".join(lines))


def every_row(out):
    """Return the rows of all files, to the bit but for the time that they took; nothing is swept or merged by it."""
    files = sorted((out / "rows").glob("[!.]*.parquet"))
    read = (rows_in(batch) for file in files for batch in read_batches(file.read_bytes(), str(file)))
    return [bits(row, but=("seconds",)) for rows in read for row in rows]


def rows_of(out):
    """Return the rows by key: of a key that is there twice, the one that is no failure."""
    rows = sorted(every_row(out), key=lambda row: row["failure"] is None)
    return {row["key"]: row for row in rows}


def expect_maps(run, out, keys):
    """Check that the maps of these rows are those of the undisturbed run, bit for bit."""
    for key in keys:
        ours, theirs = (MapStore(folder / "maps.zarr").read(key).maps for folder in (out, run.whole))
        assert {kind: values.tobytes() for kind, values in ours.items()} == {
            kind: values.tobytes() for kind, values in theirs.items()
        }


def expect_like(run, out):
    """Check that rows, maps and tables are those of the undisturbed run, each once, with nothing beside them."""
    expected = rows_of(run.whole)
    assert rows_of(out) == expected
    assert len(every_row(out)) == len(expected)
    if "--maps" in run.command:
        expect_maps(run, out, expected)
        assert len(list((out / "maps.zarr").glob("*/*"))) == len(expected)
    for name in ("evaluation.csv", "evaluation.md", "evaluation.tex"):
        assert (out / name).read_bytes() == (run.whole / name).read_bytes()
    assert drafts(out) == []
    assert {path.name for path in out.iterdir()} == {path.name for path in run.whole.iterdir()}
