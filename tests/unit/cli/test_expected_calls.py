"""Tests of the total of the progress bar: a closed form in the encoder calls of the images that are done."""

import io
from fractions import Fraction
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

import repeat_xai as rx
from repeat_xai.cli import explain_progress
from repeat_xai.cli.explain_progress import ExpectedCalls, fill_with_progress
from repeat_xai.errors import ImageError
from repeat_xai.output.results_folder import ImageOutcome, ResultsFolder

FIXED = rx.Repeat(estimator="exact", base=rx.Relax(masks=6), repeats=2)
CALLS = 13
"""Encoder calls of the fixed method for an image: two repeats of six masks, and the image itself."""


def explained(calls):
    return ImageOutcome(Path("cat.png"), record={"encoder_calls": calls})


DONE_BEFORE = ImageOutcome(Path("cat.png"), record={"encoder_calls": 1000}, already_done=True)
FAILED = ImageOutcome(Path("cat.png"), error=ImageError("cat.png: not an image"))


def test_the_total_of_a_fixed_number_of_calls_never_changes():
    expected = ExpectedCalls(FIXED, 5)
    totals = [expected.total]
    for _ in range(5):
        expected.add(explained(CALLS))
        totals.append(expected.total)
    assert totals == [5 * CALLS] * 6


@pytest.mark.parametrize("outcome", [DONE_BEFORE, FAILED])
def test_images_that_need_no_calls_leave_the_estimate_for_the_others_as_it_is(outcome):
    expected = ExpectedCalls(FIXED, 5)
    expected.add(explained(CALLS))
    expected.add(outcome)
    assert expected.total == 4 * CALLS
    assert (expected.explained, expected.calls) == (1, CALLS)


def test_the_total_of_an_automatic_budget_is_the_mean_of_the_images_that_are_done():
    calls = [257, 513, 257, 385]
    expected = ExpectedCalls(rx.Repeat(budget="auto"), len(calls))
    assert expected.total is None
    for number, each in enumerate(calls, start=1):
        expected.add(explained(each))
        mean = Fraction(sum(calls[:number]), number)
        assert expected.total == pytest.approx(float(mean * len(calls)), rel=1e-12)
    assert expected.total == sum(calls)


def test_the_total_of_an_automatic_budget_is_unknown_until_an_image_is_explained():
    expected = ExpectedCalls(rx.Repeat(budget="auto"), 3)
    expected.add(DONE_BEFORE)
    expected.add(FAILED)
    assert expected.total is None
    expected.add(explained(257))
    assert expected.total == 257


def test_a_given_budget_is_known_before_the_first_image():
    method = rx.Repeat(budget=256)
    assert ExpectedCalls(method, 3).total == 3 * method.calls


@pytest.mark.parametrize(
    ("method", "calls", "expected"),
    [
        (FIXED, [CALLS] * 3, [3 * CALLS] * 4),
        (rx.Repeat(budget="auto"), [257, 513, 385], [None, 3 * 257, 3 * 385, 3 * 385]),
    ],
    ids=["fixed", "automatic"],
)
def test_the_bar_shows_the_expected_total(method, calls, expected, encoder, tmp_path, monkeypatch):
    totals = []

    class RecordedProgress(Progress):
        def add_task(self, *arguments, total, **options):
            totals.append(total)
            return super().add_task(*arguments, total=total, **options)

        def update(self, *arguments, total, **options):
            totals.append(total)
            super().update(*arguments, total=total, **options)

    monkeypatch.setattr(explain_progress, "progress_bar", lambda: RecordedProgress(console=Console(file=io.StringIO())))
    monkeypatch.setattr(ResultsFolder, "fill", lambda *_: (explained(each) for each in calls))
    folder = ResultsFolder(folder=tmp_path, encoder=encoder, method=method, seed=0)
    outcomes = list(fill_with_progress([Path("cat.png")] * len(calls), folder, json_line=None))
    assert len(outcomes) == len(calls)
    assert totals == expected
