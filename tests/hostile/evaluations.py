"""Rows, maps and tables that `evaluate` leaves, and their comparison with those of an undisturbed run."""

from hostile.outputs import Run
from hostile.verdicts import Verdict, drafts
from small_work import network, pictures
from stores import bits

from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import read_batches, rows_in

WORK_LINE = "rows to make"
"""End of the line that reports how many rows are missing."""


def evaluate_once(folder, *options, photos, masks=16):
    """Create photos and an encoder in a folder, and run `evaluate` on them, undisturbed."""
    encoder, dataset = network(folder).name, pictures(folder / "photos", photos)
    arguments = (
        *("evaluate", "--dataset", dataset, "--encoder", encoder, "--protocol", "encoder", "--device", "cpu"),
        *("--methods", "repeat,relax", "--masks", str(masks), "--repeats", "2", *options),
    )
    run = Run(arguments, folder / "whole")
    verdict = run.into(run.whole, lines=2)
    assert verdict.kind == "right", verdict.text
    return run


def run_again(run, out):
    """Run the command into a folder, and return the verdict without the line that reports the missing rows."""
    verdict = run.into(out, lines=2)
    lines = [line for line in verdict.text.splitlines() if not line.endswith(WORK_LINE)]
    assert len(lines) <= 1, lines
    return Verdict(verdict.kind, "".join(lines))


def every_row(out):
    """Return the bits of all rows in all files, apart from their duration, without removing drafts or merging files."""
    files = sorted((out / "rows").glob("[!.]*.parquet"))
    read = (rows_in(batch) for file in files for batch in read_batches(file.read_bytes(), str(file)))
    return [bits(row, but=("seconds",)) for rows in read for row in rows]


def rows_of(out):
    """Return the rows by key; if a key has several, one that is not a failure."""
    rows = sorted(every_row(out), key=lambda row: row["failure"] is None)
    return {row["key"]: row for row in rows}


def expect_maps(run, out, keys):
    """Check that the maps of these rows equal those of the undisturbed run, bit for bit."""
    for key in keys:
        maps, expected = (MapStore(folder / "maps.zarr").read(key).maps for folder in (out, run.whole))
        assert {kind: values.tobytes() for kind, values in maps.items()} == {
            kind: values.tobytes() for kind, values in expected.items()
        }


def expect_same_results(run, out):
    """Check that rows, maps and tables equal those of the undisturbed run, and that nothing else is there."""
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
