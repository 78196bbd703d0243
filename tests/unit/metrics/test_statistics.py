"""Summaries and comparisons, compared with scipy and with definitions."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

import repeat_xai as rx
from repeat_xai.metrics import compare_with_baseline, summary

SCORES = torch.tensor(np.random.default_rng(0).gamma(2.0, size=40))


def test_the_interval_is_a_percentile_bootstrap():
    result = summary(SCORES)
    theirs = scipy.stats.bootstrap((SCORES.numpy(),), np.mean, n_resamples=20_000, method="percentile", rng=1)
    standard_error = SCORES.std().item() / math.sqrt(40)
    assert result.low == pytest.approx(theirs.confidence_interval.low, abs=0.05 * standard_error)
    assert result.high == pytest.approx(theirs.confidence_interval.high, abs=0.05 * standard_error)
    assert (result.mean, result.deviation) == pytest.approx((SCORES.mean().item(), SCORES.std().item()))


def test_intervals_cover_the_true_mean_at_their_level():
    samples = torch.randn(300, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    intervals = [summary(row, resamples=400, seed=i) for i, row in enumerate(samples)]
    covered = np.mean([interval.low <= 0 <= interval.high for interval in intervals])
    assert covered == pytest.approx(0.94, abs=0.035)


def test_undefined_scores_are_counted_and_left_out():
    assert summary(torch.tensor([math.nan, 2.0, math.nan])) == (2.0, None, None, None, 1, 2)
    assert summary(torch.tensor([math.nan])) == (None, None, None, None, 0, 1)
    assert summary(torch.tensor([2.0, 2.0])) == (2.0, 0.0, 2.0, 2.0, 2, 0)


def test_methods_are_compared_on_the_same_images():
    generator = np.random.default_rng(1)
    base = generator.normal(size=30)
    scores = {
        "base": base,
        "same": base.copy(),
        "better": base + generator.normal(0.5, 0.3, 30),
        "noise": base + generator.normal(0, 1, 30),
    }
    scores["better"][3] = math.nan
    scores["twin"] = scores["better"].copy()  # the same p twice: neither may be corrected less than the other
    result = compare_with_baseline({name: torch.tensor(row) for name, row in scores.items()}, baseline="base")
    differences = np.delete(scores["better"] - base, 3)
    assert result["better"].p == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
    assert result["better"].difference == pytest.approx(differences.mean())
    assert result["better"].images == 29
    assert result["same"][:3] == (0.0, 1.0, 1.0)
    raw = {name: comparison.p for name, comparison in result.items()}
    assert {name: comparison.corrected for name, comparison in result.items()} == pytest.approx(holm(raw))


def holm(raw):
    """Return the m-th smallest of n p-values times n − m + 1, none below that of a smaller p-value: the definition."""
    names, corrected = sorted(raw, key=raw.get), {}
    for i, name in enumerate(names):
        corrected[name] = min(1.0, max((len(names) - j) * raw[names[j]] for j in range(i + 1)))
    return corrected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: summary(torch.tensor([math.inf])), "infinite"),
        (lambda: summary(torch.ones(2), level=1.0), "level"),
        (lambda: compare_with_baseline({"a": torch.ones(2)}, baseline="b"), "unknown baseline 'b'"),
        (lambda: compare_with_baseline({"a": torch.ones(2), "b": torch.ones(3)}, baseline="a"), "same images only"),
    ],
)
def test_scores_that_cannot_be_summarised_or_compared_are_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()
