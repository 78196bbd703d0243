"""Tests of hostile images among good photos in `explain`, `screen`, `evaluate` and the app."""

import csv
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stderr

import pytest
from command import without_image_warnings
from hostile.image_cases import Picture
from hostile.image_sources import NAMES, PLACES, named, sparse
from hostile.jpeg_cases import JPEGS
from hostile.other_cases import BOXES, MAPS, WEBPS
from hostile.outputs import quick_panels, verdict_of_main
from hostile.png_cases import PNGS
from hostile.tiff_cases import BITMAPS, GIFS, TIFFS
from hostile.verdicts import Verdict, verdict_of_call
from small_work import network, pictures

from repeat_xai.app.photos import read_photo
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.types import Explanation

FILES: list[Picture] = [*PNGS, *JPEGS, *TIFFS, *BITMAPS, *GIFS, *MAPS, *WEBPS, *BOXES]
STEP = 20
"""Every file of this step is in the short part."""
CHEAP = ("--masks", 20, "--repeats", 2)
GOOD = 3
parts = pytest.mark.parametrize(
    "cases", [FILES[::STEP], pytest.param(FILES, marks=pytest.mark.hostile)], ids=["some", "all"]
)


@pytest.fixture
def photos(tmp_path):
    """A folder with a few good photos."""
    pictures(tmp_path / "photos", GOOD)
    return tmp_path / "photos"


def lines_of(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if f"/{name}: " in line or line.startswith(f"repeat-xai: {name}: ")]


def verdict_of(text: str, path, done: bool) -> Verdict:
    """Return the verdict on one of the images of a command."""
    lines = lines_of(without_image_warnings(text) if done else text, path.name)
    if done and not lines:
        return Verdict("right")
    return Verdict("refused" if len(lines) == 1 and not done else "traceback", "\n".join(lines))


def verdict_of_row(failure: str | None) -> Verdict:
    """Return the verdict on one of the images of a dataset."""
    if failure is None:
        return Verdict("right")
    return Verdict("refused" if len(failure.splitlines()) == 1 else "traceback", failure)


@parts
def test_explain_refuses_each_bad_image_in_one_line_and_explains_the_others(cases, photos, judge, tmp_path):
    made = {case.make(photos): case for case in cases}
    bad = sum(case.expected == "refused" for case in cases)
    with quick_panels():
        run = ("explain", photos, "--encoder", network(tmp_path).name, "--out", tmp_path / "out")
        verdict = verdict_of_main(*run, "--estimator", "exact", *CHEAP, seconds=300, lines=bad)
    assert verdict.kind == "refused", verdict.text
    for path, case in made.items():
        done = (tmp_path / f"out/{path.stem}.npz").exists()
        judge("images by command", verdict_of(verdict.text, path, done), case)
    right = [path.stem for path, case in made.items() if case.expected == "right"]
    for stem in (*right, *(f"{number:04}" for number in range(GOOD))):
        assert Explanation.load(tmp_path / f"out/{stem}.npz").importance.isfinite().all()
    assert (tmp_path / "out/index.html").exists()


@parts
def test_screen_ranks_the_images_that_can_be_read(cases, photos, judge, tmp_path):
    made = {case.make(photos): case for case in cases}
    bad = sum(case.expected == "refused" for case in cases)
    with quick_panels():
        run = ("screen", photos, "--encoder", network(tmp_path).name, "--out", tmp_path / "out")
        verdict = verdict_of_main(*run, *CHEAP, seconds=300, lines=bad)
    with (tmp_path / "out/screen.csv").open(newline="") as file:
        ranked = {row["image"] for row in csv.DictReader(file) if not row["failure"]}
    for path, case in made.items():
        judge("images by command", verdict_of(verdict.text, path, str(path) in ranked), case)
    assert len(ranked) == GOOD + len(cases) - bad


def test_evaluate_stores_the_reason_of_a_failure_in_the_row_of_the_image(photos, judge, tmp_path):
    made = {case.make(photos): case for case in FILES[::60]}
    run = ("evaluate", "--dataset", photos, "--out", tmp_path / "out", "--encoder", network(tmp_path).name)
    cheap = ("--methods", "relax", "--metrics", "complexity", "--masks", 8, "--protocol", "encoder")
    verdict = verdict_of_main(*run, *cheap, seconds=120, lines=len(made) + 1)
    assert verdict.kind == "refused", verdict.text
    rows = {row.image.partition(" ")[0]: row.failure for row in RowStore(tmp_path / "out/rows").rows().values()}
    assert len(rows) == GOOD + len(made)
    for path, case in made.items():
        failure = rows[path.name]
        judge("images by command", verdict_of_row(failure), case)


@parts
def test_the_app_refuses_a_bad_photo_in_one_line_without_its_path(cases, judge, tmp_path):
    for case in cases:
        path = case.make(tmp_path)
        verdict = verdict_of_call(lambda path=path: read_photo(path), seconds=10)
        judge("images by command", verdict)
        thin = "eight by sixty thousand" in case.name  # too thin for the app's encoder of 224×224 pixels
        assert verdict.kind == ("refused" if thin else case.expected), (case.name, verdict.text)
        assert str(tmp_path) not in verdict.text
        assert verdict.kind == "right" or verdict.text.startswith(f"{path.name}: ")


def test_file_names_with_line_breaks_or_formulas_are_escaped(judge, tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path / "photos")
    for text in NAMES.values():
        named(text)(tmp_path / "photos")
        named(b"no" + text[:240] + b".png", b"none")(tmp_path / "photos")
    with quick_panels():
        run = ("screen", ".", "--encoder", network(tmp_path).name, "--out", tmp_path / "out")
        verdict = verdict_of_main(*run, *CHEAP, lines=len(NAMES))
    judge("images by command", verdict)
    assert verdict.kind == "refused", verdict.text
    assert len(re.findall("not an image that can be read", verdict.text)) == len(NAMES)
    with (tmp_path / "out/screen.csv").open(newline="") as file:
        names = [row["image"] for row in csv.DictReader(file) if not row["failure"]]
    assert len(names) == len(NAMES)
    assert "'=1+1.png" in names
    assert "'-rf.png" in names


@pytest.mark.parametrize("case", [case for case in PLACES if not re.search("null byte|name has", case.name)], ids=str)
def test_a_path_that_is_no_file_is_refused_in_one_line(case, judge, tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path / "photos")  # an empty path stands for the working folder
    with redirect_stderr(io.StringIO()), quick_panels():
        source = case.make(tmp_path / "photos")
        run = ("explain", source, "--encoder", network(tmp_path).name, "--out", tmp_path / "out")
        verdict = verdict_of_main(*run, "--estimator", "exact", *CHEAP)
    judge("images by command", verdict, case)


MEASURED = """
import json, resource, sys, time
import repeat_xai as rx
from torch import nn
encoder = rx.load_encoder(nn.Identity(), device="cpu")
for path in sys.argv[1:]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        rx.load_image(path, encoder)
    except rx.RepeatError as error:
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([time.process_time() - began, kilobytes, str(error)]))
"""


def test_a_sparse_file_takes_neither_time_nor_memory(judge, tmp_path):
    paths = []
    for gigabytes in (0.4, 2, 6):
        (tmp_path / f"{gigabytes}").mkdir()
        paths.append(sparse(int(gigabytes * 2**30))(tmp_path / f"{gigabytes}"))
    done = subprocess.run([sys.executable, "-c", MEASURED, *paths], capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(paths)
    for seconds, kilobytes, text in answers:
        assert seconds < 1
        assert kilobytes < 20_000
        judge("images by command", Verdict("refused" if len(text.splitlines()) == 1 else "traceback", text))
