"""Summaries against scipy and against what can be worked out by hand."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

import repeat_xai as rx
from repeat_xai.metrics import compared, summary

SCORES = torch.tensor(np.random.default_rng(0).gamma(2.0, size=40))


def test_the_interval_is_the_percentile_bootstraps():
    found = summary(SCORES)
    theirs = scipy.stats.bootstrap((SCORES.numpy(),), np.mean, n_resamples=20_000, method="percentile", rng=1)
    spread = SCORES.std().item() / math.sqrt(40)
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.05 * spread)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.05 * spread)
    assert (found.mean, found.deviation) == pytest.approx((SCORES.mean().item(), SCORES.std().item()))


def test_intervals_cover_the_truth_as_often_as_they_say():
    drawn = torch.randn(300, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    intervals = [summary(row, resamples=400, seed=i) for i, row in enumerate(drawn)]
    covered = np.mean([one.low <= 0 <= one.high for one in intervals])
    assert covered == pytest.approx(0.94, abs=0.035)


def test_the_undefined_is_counted_and_left_out():
    assert summary(torch.tensor([math.nan, 2.0, math.nan])) == (2.0, None, None, None, 1, 2)
    assert summary(torch.tensor([math.nan])) == (None, None, None, None, 0, 1)
    assert summary(torch.tensor([2.0, 2.0])) == (2.0, 0.0, 2.0, 2.0, 2, 0)


def test_methods_are_compared_on_the_same_images():
    drawn = np.random.default_rng(1)
    base = drawn.normal(size=30)
    scores = {
        "base": base,
        "same": base.copy(),
        "better": base + drawn.normal(0.5, 0.3, 30),
        "noise": base + drawn.normal(0, 1, 30),
    }
    scores["better"][3] = math.nan
    scores["twin"] = scores["better"].copy()  # the same p twice: neither may be corrected less than the other
    found = compared({name: torch.tensor(row) for name, row in scores.items()}, baseline="base")
    away = np.delete(scores["better"] - base, 3)
    assert found["better"].p == pytest.approx(scipy.stats.wilcoxon(away).pvalue)
    assert found["better"].difference == pytest.approx(away.mean())
    assert found["better"].images == 29
    assert found["same"][:3] == (0.0, 1.0, 1.0)
    raw = {name: one.p for name, one in found.items()}
    assert {name: one.corrected for name, one in found.items()} == pytest.approx(holm(raw))


def holm(raw):
    """From the definition: the m-th smallest of n times n − m + 1, and none below one before it."""
    names, corrected = sorted(raw, key=raw.get), {}
    for i, name in enumerate(names):
        corrected[name] = min(1.0, max((len(names) - j) * raw[names[j]] for j in range(i + 1)))
    return corrected


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: summary(torch.tensor([math.inf])), "infinite"),
        (lambda: summary(torch.ones(2), level=1.0), "level"),
        (lambda: compared({"a": torch.ones(2)}, baseline="b"), "unknown baseline 'b'"),
        (lambda: compared({"a": torch.ones(2), "b": torch.ones(3)}, baseline="a"), "same images only"),
    ],
)
def test_what_cannot_be_said_is_refused(wrong, message):
    with pytest.raises(rx.RepeatError, match=message):
        wrong()
