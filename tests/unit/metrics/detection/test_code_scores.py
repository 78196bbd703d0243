"""Scores of codes alone: by hand, by scikit-learn, and on codes of two kinds."""

import math

import numpy as np
import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics.detection import CODE_SCORES, density, mahalanobis, nearest, quality


def normal(*sizes, seed=0):
    """Return scores or codes of a standard normal distribution."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=sizes))


def test_nearest_and_mahalanobis_by_hand():
    reference = torch.nn.functional.normalize(normal(30, 5), dim=1) * 7
    code = normal(1, 5, seed=1)
    away = (torch.nn.functional.normalize(reference) - torch.nn.functional.normalize(code)).norm(dim=1)
    assert nearest(code, reference).item() == pytest.approx(away.sort().values[9].item())
    many = normal(20_000, 3) * torch.tensor([1.0, 2.0, 3.0])
    far = torch.tensor([[2.0, -4.0, 6.0]]).double()
    assert mahalanobis(far, many).item() == pytest.approx(math.sqrt(12), rel=0.02)


@pytest.mark.parametrize(("images", "dim"), [(30, 5), (20, 50), (24, 300)])
def test_mahalanobis_equals_scikit_learn(images, dim):
    from sklearn.covariance import LedoitWolf

    generator = torch.Generator().manual_seed(dim)
    known = torch.randn(images, dim, generator=generator).double() * torch.linspace(0.1, 3, dim)
    codes = torch.randn(9, dim, generator=generator).double()
    theirs = np.sqrt(LedoitWolf().fit(known.numpy()).mahalanobis(codes.numpy()))
    assert mahalanobis(codes, known).numpy() == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("name", CODE_SCORES)
def test_codes_of_another_kind_have_higher_scores(name):
    known, unknown = normal(80, 12), normal(20, 12, seed=1)
    known[:, :6] += 4
    unknown[:, 6:] += 4
    assert quality(*torch.split(CODE_SCORES[name](torch.cat((known[40:], unknown)), known[:40]), 40)).auroc > 0.95
    assert CODE_SCORES[name](known).isfinite().all()


def test_density_is_that_of_a_normal_distribution():
    """The log density of a single kind of code falls with the square of the distance."""
    known = normal(4000, 2)
    near, far = density(torch.tensor([[0.0, 0.0], [0.0, 2.0]]).double(), known).tolist()
    assert far - near == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest(torch.ones(2, 3)), "4 or more"),
        (lambda: mahalanobis(torch.full((5, 3), math.nan)), "NaN or infinite"),
    ],
)
def test_codes_that_cannot_be_scored_are_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()
