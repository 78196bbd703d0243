"""Quality of a score and its interval: by definition, by scikit-learn, and by a slow loop over resamples."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import repeat_xai as rx
from repeat_xai.metrics.detection import bootstrap_interval, quality, roc
from repeat_xai.metrics.detection.quality import resampled_qualities
from repeat_xai.seeds import fold, uniforms


def rounded_scores(kind, count):
    """Return scores of one kind of image, some of which tie."""
    scores = torch.randn(count, generator=torch.Generator().manual_seed(kind)) + kind
    return (4 * scores).round() / 4


def normal(*sizes, seed=0):
    """Return scores or codes of a standard normal distribution."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=sizes))


def by_scikit_learn(known, unknown):
    """Return AUROC, AUPR and FPR95."""
    truth, values = np.repeat((0, 1), (len(known), len(unknown))), np.concatenate((known, unknown))
    false, true, _ = roc_curve(truth, values, drop_intermediate=False)
    return roc_auc_score(truth, values), average_precision_score(truth, values), false[np.argmax(true >= 0.95)]


@pytest.mark.parametrize("counts", [(40, 25), (1, 1), (3, 90)])
def test_quality_equals_scikit_learn(counts):
    known, unknown = rounded_scores(0, counts[0]), rounded_scores(1, counts[1])
    assert quality(known, unknown) == pytest.approx(by_scikit_learn(known.numpy(), unknown.numpy()), abs=1e-12)


def test_quality_is_the_chance_that_unknown_scores_higher():
    known, unknown = normal(60), normal(40, seed=1) + 1
    result = quality(known, unknown)
    pairs = (unknown[:, None] > known).double().mean().item()
    assert result.auroc == pytest.approx(pairs)
    cut = unknown.sort().values[2]  # 38 of 40 lie at or above it
    assert result.fpr95 == pytest.approx((known >= cut).double().mean().item())
    assert quality(unknown, known).auroc == pytest.approx(1 - pairs)


def test_a_roc_has_both_shares_at_every_cut():
    """Scores that tie change both shares at once."""
    known, unknown = (normal(60) * 2).round(), (normal(40, seed=1) * 2 + 1).round()
    curve = roc(known, unknown)
    cuts = sorted({math.inf, *known.tolist(), *unknown.tolist()}, reverse=True)
    assert curve.false.tolist() == pytest.approx([sum(s >= cut for s in known.tolist()) / 60 for cut in cuts])
    assert curve.true.tolist() == pytest.approx([sum(s >= cut for s in unknown.tolist()) / 40 for cut in cuts])
    pairs = ((unknown[:, None] > known).double() + (unknown[:, None] == known).double() / 2).mean().item()
    assert curve.area == pytest.approx(pairs)
    assert curve.area == pytest.approx(quality(known, unknown).auroc)


def test_equal_scores_give_chance():
    assert quality(torch.ones(30), torch.ones(10)) == (0.5, 0.25, 1.0)


def test_counts_stand_for_the_images_of_a_resample():
    known, unknown = rounded_scores(0, 30).double().numpy(), rounded_scores(1, 20).double().numpy()
    rng = np.random.default_rng(0)
    of_known, of_unknown = rng.integers(0, 30, 30), rng.integers(0, 20, 20)
    counts = [np.bincount(drawn, minlength=n)[None].astype(float) for drawn, n in ((of_known, 30), (of_unknown, 20))]
    result = [float(measure[0]) for measure in resampled_qualities(np.concatenate((known, unknown)), *counts)]
    assert result == pytest.approx(by_scikit_learn(known[of_known], unknown[of_unknown]), abs=1e-12)


def test_the_interval_is_that_of_a_loop_over_resamples():
    known, unknown = rounded_scores(0, 12), rounded_scores(1, 9)
    drawn = [
        (uniforms(fold(5, "bootstrap", kind, n), start=0, stop=60, width=n) * n).astype(int)
        for kind, n in ((0, 12), (1, 9))
    ]
    areas = [by_scikit_learn(known[a], unknown[b])[0] for a, b in zip(*drawn, strict=True)]
    interval = bootstrap_interval(known, unknown, "auroc", resamples=60, seed=5)
    assert interval == pytest.approx(np.quantile(areas, (0.025, 0.975)), abs=1e-12)


def test_the_interval_of_separated_sets_has_no_width():
    assert bootstrap_interval(torch.arange(5.0), torch.arange(5.0) + 10, "auroc", seed=0) == (1.0, 1.0)
    assert bootstrap_interval(torch.arange(5.0), torch.arange(5.0) + 10, "fpr95", seed=0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quality(torch.ones(3), torch.ones(0)), "both known and unknown"),
        (lambda: quality(torch.ones(3), torch.tensor([math.inf])), "NaN or infinite"),
        (lambda: roc(torch.ones(0), torch.ones(3)), "both known and unknown"),
    ],
)
def test_scores_that_cannot_be_judged_are_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()
