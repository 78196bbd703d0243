"""Folders of results: made once, damaged in a copy, run again, and compared with what they were."""

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
from hostile.verdicts import Hang, Verdict, drafts, time_limit
from matplotlib.figure import Figure
from small_work import network, pictures

import repeat_xai.output.results_folder
import repeat_xai.output.screening
from repeat_xai.cli import main
from repeat_xai.types import Explanation

PHOTOS = 2
CLOCK = ("seconds", "finished")
"""Fields of a provenance that differ from run to run; how long the encoder took to be made ready is another."""


def some_in_short(cases, every: int) -> list:
    """The cases, of which every so many-th is in the short part of the corpus and the others in the long part."""
    return [
        pytest.param(case, id=str(case), marks=() if number % every == 0 else pytest.mark.hostile)
        for number, case in enumerate(cases)
    ]


class Run(NamedTuple):
    """A command that fills a folder, and the folder as it should be."""

    command: tuple[str, ...]
    """Without its `--out`."""
    whole: Path

    def into(self, out: Path, *, lines: int = 1) -> Verdict:
        """Run the command into a folder; a refusal may have so many lines."""
        return commanded_here(*self.command, "--out", out, lines=lines)

    def copy(self, out: Path) -> Path:
        """A copy of the whole folder, to be damaged."""
        shutil.copytree(self.whole, out)
        return out


@contextlib.contextmanager
def quick_panels():
    """For the time of the block panels and comparisons show the first map alone: whole ones take longer to draw."""

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


def made(folder: Path, command: str, *options: object, photos: int = PHOTOS) -> Run:
    """Make photos and an encoder in a folder, run a command on them, and check that all goes well."""
    folder.mkdir(exist_ok=True)
    encoder = network(folder).name
    seen = pictures(folder / "photos", photos)
    arguments = (command, seen, "--encoder", encoder, *map(str, options))
    run = Run(arguments, folder / "whole")
    verdict = run.into(run.whole)
    assert verdict.kind == "right", verdict.said
    return run


def commanded_here(*arguments: object, seconds: float = 30.0, lines: int = 1) -> Verdict:
    """Run `repeat-xai` in this process. A refusal is status 1 or 2 and so many lines at most on standard error."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with time_limit(seconds), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([str(argument) for argument in arguments])
    except SystemExit as ended:
        status, said = ended.code, err.getvalue()
    except Hang:
        return Verdict("hang", err.getvalue())
    except BaseException:
        return Verdict("traceback", traceback.format_exc())
    else:
        return Verdict("traceback", "the command did not end with a status")
    if status == 0:
        return Verdict("right", said)
    found = said.splitlines()
    told = 0 < len(found) <= lines and all(line.startswith("repeat-xai: ") for line in found)
    return Verdict("refused" if status in (1, 2) and told else "traceback", f"status {status}: {said}")


def results(folder: Path) -> dict[str, Path]:
    """The regular files below a folder by their place in it."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def expect_same(out: Path, whole: Path, *, names: set[str] | None = None) -> None:
    """Check that results are those of the whole folder: bit for bit, but for the time that everything took."""
    expected, found = results(whole), results(out)
    names = set(expected) if names is None else names
    assert names <= set(found), f"missing: {names - set(found)}"
    for name in names:
        same_file(found[name], expected[name])
    assert drafts(out) == []


def same_file(found: Path, expected: Path) -> None:
    """Check that two results are the same but for time and for the folder they lie in."""
    if found.suffix == ".npz":
        with np.load(found) as ours, np.load(expected) as theirs:
            assert set(ours) == set(theirs)
            for part in set(ours) - {"provenance"}:
                assert ours[part].dtype == theirs[part].dtype
                np.testing.assert_array_equal(ours[part], theirs[part])
            assert timeless(str(ours["provenance"])) == timeless(str(theirs["provenance"]))
        with zipfile.ZipFile(found) as archive:
            assert archive.testzip() is None
    elif found.suffix == ".json":
        assert timeless(found.read_text()) == timeless(expected.read_text())
    elif found.suffix == ".png":
        with PIL.Image.open(found) as picture:
            picture.verify()
        assert found.read_bytes() == expected.read_bytes()
    elif found.suffix == ".html":
        assert scripts(found) == scripts(expected)
    elif found.suffix == ".csv":
        assert placeless(found) == placeless(expected)


def timeless(text: str) -> dict:
    """A provenance without what differs from run to run."""
    record = json.loads(text)
    for name in CLOCK:
        record.pop(name, None)
    record.get("ran", {}).pop("prepared_seconds", None)
    return record


def placeless(table: Path) -> str:
    """A table of images without the folder that the results are in."""
    return table.read_text().replace(str(table.parent), "")


def scripts(page: Path) -> list[str]:
    """Which images a page holds, and the pictures of them."""
    text = page.read_text()
    assert text.rstrip().endswith("</html>")
    return re.findall(r'<span class="name">.*?</span>|data:image/[a-z]+;base64,[^"]*', text)


def whole(path: Path) -> bool:
    """Whether a file can be read to its end."""
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
