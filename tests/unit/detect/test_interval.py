"""Intervals of a quality: the same numbers as scikit-learn's, and as a slow loop over resamples."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from repeat_xai.detect import bootstrapped, mahalanobis, quality
from repeat_xai.detect.interval import qualities
from repeat_xai.seeds import fold, uniforms


def scores(kind, count):
    """With ties."""
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(kind)) + kind
    return (4 * drawn).round() / 4


def test_each_image_once_gives_the_quality_itself():
    known, unknown = scores(0, 40), scores(1, 25)
    values = torch.cat((known, unknown)).double().numpy()
    found = qualities(values, np.ones((1, 40)), np.ones((1, 25)))
    assert [float(part[0]) for part in found] == pytest.approx(list(quality(known, unknown)), abs=1e-12)


def test_a_resample_is_the_images_that_are_in_it():
    known, unknown = scores(0, 30).double().numpy(), scores(1, 20).double().numpy()
    rng = np.random.default_rng(0)
    here, there = rng.integers(0, 30, 30), rng.integers(0, 20, 20)
    counts = [np.bincount(drawn, minlength=n)[None].astype(float) for drawn, n in ((here, 30), (there, 20))]
    truth, values = np.repeat((0, 1), (30, 20)), np.concatenate((known[here], unknown[there]))
    auroc, aupr, fpr95 = (float(part[0]) for part in qualities(np.concatenate((known, unknown)), *counts))
    assert auroc == pytest.approx(roc_auc_score(truth, values), abs=1e-12)
    assert aupr == pytest.approx(average_precision_score(truth, values), abs=1e-12)
    assert fpr95 == quality(torch.from_numpy(known[here]), torch.from_numpy(unknown[there])).fpr95


def test_the_interval_is_that_of_a_loop_over_resamples(monkeypatch):
    monkeypatch.setattr("repeat_xai.detect.interval.RESAMPLES", 60)
    known, unknown = scores(0, 12), scores(1, 9)
    found = []
    drawn = [
        (uniforms(fold(5, "bootstrap", kind, n), start=0, stop=60, width=n) * n).astype(int)
        for kind, n in ((0, 12), (1, 9))
    ]
    for here, there in zip(*drawn, strict=True):
        found.append(quality(known[here], unknown[there]).auroc)
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
