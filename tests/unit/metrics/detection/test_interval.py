"""Intervals of a quality: the same numbers as scikit-learn's, and as a slow loop over resamples."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from repeat_xai.metrics.detection import bootstrapped, mahalanobis, quality
from repeat_xai.metrics.detection.quality import qualities
from repeat_xai.seeds import fold, uniforms


def scores(kind, count):
    """With ties."""
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(kind)) + kind
    return (4 * drawn).round() / 4


def by_scikit_learn(known, unknown):
    truth, values = np.repeat((0, 1), (len(known), len(unknown))), np.concatenate((known, unknown))
    false, true, _ = roc_curve(truth, values, drop_intermediate=False)
    return roc_auc_score(truth, values), average_precision_score(truth, values), false[np.argmax(true >= 0.95)]


@pytest.mark.parametrize("counts", [(40, 25), (1, 1), (3, 90)])
def test_quality_is_scikit_learns(counts):
    known, unknown = scores(0, counts[0]), scores(1, counts[1])
    assert quality(known, unknown) == pytest.approx(by_scikit_learn(known.numpy(), unknown.numpy()), abs=1e-12)


def test_a_resample_is_the_images_that_are_in_it():
    known, unknown = scores(0, 30).double().numpy(), scores(1, 20).double().numpy()
    rng = np.random.default_rng(0)
    here, there = rng.integers(0, 30, 30), rng.integers(0, 20, 20)
    counts = [np.bincount(drawn, minlength=n)[None].astype(float) for drawn, n in ((here, 30), (there, 20))]
    found = [float(part[0]) for part in qualities(np.concatenate((known, unknown)), *counts)]
    assert found == pytest.approx(by_scikit_learn(known[here], unknown[there]), abs=1e-12)


def test_the_interval_is_that_of_a_loop_over_resamples(monkeypatch):
    monkeypatch.setattr("repeat_xai.metrics.detection.interval.RESAMPLES", 60)
    known, unknown = scores(0, 12), scores(1, 9)
    found = []
    drawn = [
        (uniforms(fold(5, "bootstrap", kind, n), start=0, stop=60, width=n) * n).astype(int)
        for kind, n in ((0, 12), (1, 9))
    ]
    for here, there in zip(*drawn, strict=True):
        found.append(by_scikit_learn(known[here], unknown[there])[0])
    assert bootstrapped(known, unknown, "auroc", seed=5) == pytest.approx(np.quantile(found, (0.025, 0.975)), abs=1e-12)


def test_sets_wholly_apart_leave_nothing_to_chance():
    assert bootstrapped(torch.arange(5.0), torch.arange(5.0) + 10, "auroc", seed=0) == (1.0, 1.0)
    assert bootstrapped(torch.arange(5.0), torch.arange(5.0) + 10, "fpr95", seed=0) == (0.0, 0.0)


@pytest.mark.parametrize(("images", "dim"), [(30, 5), (20, 50), (24, 300)])
def test_mahalanobis_is_scikit_learns(images, dim):
    from sklearn.covariance import LedoitWolf

    generator = torch.Generator().manual_seed(dim)
    known = torch.randn(images, dim, generator=generator).double() * torch.linspace(0.1, 3, dim)
    codes = torch.randn(9, dim, generator=generator).double()
    theirs = np.sqrt(LedoitWolf().fit(known.numpy()).mahalanobis(codes.numpy()))
    assert mahalanobis(codes, known).numpy() == pytest.approx(theirs, rel=1e-9)
