"""Folders of results that are made once, damaged in a copy, made again, and compared with the original."""

import contextlib
import io
import json
import re
import shutil
import traceback
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image
import pyarrow.parquet as pq
import pytest
from command import without_image_warnings
from hostile.verdicts import Hang, Verdict, drafts, time_limit
from matplotlib.figure import Figure
from small_work import network, pictures

import repeat_xai.output.results_folder
import repeat_xai.output.screening
from repeat_xai.cli import main
from repeat_xai.types import Explanation

PHOTOS = 2
CLOCK = ("seconds", "finished")
"""Fields of a provenance that differ between runs; the seconds that preparing the encoder takes differ too."""


def in_both_parts(cases, every: int) -> list:
    """Return the cases as parameters; each `every`-th is in the short part of the corpus, the rest in the long part."""
    return [
        pytest.param(case, id=str(case), marks=() if number % every == 0 else pytest.mark.hostile)
        for number, case in enumerate(cases)
    ]


class Run(NamedTuple):
    """A command that fills a folder, and the folder as it should be."""

    command: tuple[str, ...]
    """The arguments without `--out`."""
    whole: Path

    def into(self, out: Path, *, lines: int = 1) -> Verdict:
        """Run the command into a folder; a refusal may have this number of lines."""
        return verdict_of_main(*self.command, "--out", out, lines=lines)

    def copy(self, out: Path) -> Path:
        """Return a copy of the whole folder, to be damaged."""
        shutil.copytree(self.whole, out)
        return out


@contextlib.contextmanager
def quick_panels():
    """Draw only the first map on panels and comparisons during the block, because complete ones take longer."""

    def figure(explanations, **_):
        first = explanations[0] if isinstance(explanations, list) else explanations
        drawn = Figure((0.4, 0.4))
        drawn.figimage(first.importance.numpy())
        return drawn

    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(repeat_xai.output.results_folder, "panel", figure)
        quick.setattr(repeat_xai.output.results_folder, "comparison", figure)
        quick.setattr(repeat_xai.output.screening, "contact_sheet", lambda *_: Figure((0.4, 0.4)))
        yield


def run_once(folder: Path, command: str, *options: object, photos: int = PHOTOS) -> Run:
    """Create photos and an encoder in a folder, run a command on them, and check that it succeeds."""
    folder.mkdir(exist_ok=True)
    encoder = network(folder).name
    dataset = pictures(folder / "photos", photos)
    arguments = (command, dataset, "--encoder", encoder, *map(str, options))
    run = Run(arguments, folder / "whole")
    verdict = run.into(run.whole)
    assert verdict.kind == "right", verdict.text
    return run


def verdict_of_main(*arguments: object, seconds: float = 30.0, lines: int = 1) -> Verdict:
    """Run `repeat-xai` in this process. A refusal is status 1 or 2 with at most `lines` lines on standard error.

    Warnings about images that were explained are not counted.
    """
    out, err = io.StringIO(), io.StringIO()
    try:
        with time_limit(seconds), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status, errors = ended.code, err.getvalue()
    except Hang:
        return Verdict("hang", err.getvalue())
    except BaseException:
        return Verdict("traceback", traceback.format_exc())
    else:
        return Verdict("traceback", "the command did not end with a status")
    if status == 0:
        return Verdict("right", errors)
    result = without_image_warnings(errors).splitlines()
    in_lines = 0 < len(result) <= lines and all(line.startswith("repeat-xai: ") for line in result)
    return Verdict("refused" if status in (1, 2) and in_lines else "traceback", f"status {status}: {errors}")


def results(folder: Path) -> dict[str, Path]:
    """Return the regular files below a folder by their relative path."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def expect_same(out: Path, whole: Path, *, names: set[str] | None = None) -> None:
    """Check that results equal those of the whole folder bit for bit, apart from durations and times."""
    expected, result = results(whole), results(out)
    names = set(expected) if names is None else names
    assert names <= set(result), f"missing: {names - set(result)}"
    for name in names:
        same_file(result[name], expected[name])
    assert drafts(out) == []


def same_file(result: Path, expected: Path) -> None:
    """Check that two results are equal apart from times and from the folder that they lie in."""
    if result.suffix == ".npz":
        with np.load(result) as arrays, np.load(expected) as expected_arrays:
            assert set(arrays) == set(expected_arrays)
            for part in set(arrays) - {"provenance"}:
                assert arrays[part].dtype == expected_arrays[part].dtype
                np.testing.assert_array_equal(arrays[part], expected_arrays[part])
            assert timeless(str(arrays["provenance"])) == timeless(str(expected_arrays["provenance"]))
        with zipfile.ZipFile(result) as archive:
            assert archive.testzip() is None
    elif result.suffix == ".json":
        assert timeless(result.read_text()) == timeless(expected.read_text())
    elif result.suffix == ".png":
        with PIL.Image.open(result) as picture:
            picture.verify()
        assert result.read_bytes() == expected.read_bytes()
    elif result.suffix == ".html":
        assert scripts(result) == scripts(expected)
    elif result.suffix == ".csv":
        assert placeless(result) == placeless(expected)


def timeless(text: str) -> dict:
    """Return a provenance without the fields that differ between runs."""
    record = json.loads(text)
    for name in CLOCK:
        record.pop(name, None)
    record.get("ran", {}).pop("prepared_seconds", None)
    return record


def placeless(table: Path) -> str:
    """Return a table of images without the folder that the results are in."""
    return table.read_text().replace(str(table.parent), "")


def scripts(page: Path) -> list[str]:
    """Return the names and pictures of the images that a page holds."""
    text = page.read_text()
    assert text.rstrip().endswith("</html>")
    return re.findall(r'<span class="name">.*?</span>|data:image/[a-z]+;base64,[^"]*', text)


def whole(path: Path) -> bool:
    """Return whether a file can be read to its end."""
    with contextlib.suppress(Exception):
        if path.suffix == ".npz":
            Explanation.load(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".png":
            with PIL.Image.open(path) as picture:
                picture.load()
        elif path.suffix == ".html":
            return path.read_text().rstrip().endswith("</html>")
        elif path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".csv":
            return path.read_text().endswith("\n")
        return True
    return False
