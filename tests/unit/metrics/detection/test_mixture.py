"""The mixture of two normal distributions: recovered parameters, and when it separates two groups of images."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import repeat_xai as rx
from repeat_xai.metrics.detection import mixture


def normal(*sizes, seed=0):
    """Return scores or codes of a standard normal distribution."""
    return torch.from_numpy(np.random.default_rng(seed).normal(size=sizes))


def test_a_mixture_is_recovered():
    scores = torch.cat((normal(700) * 0.01 + 0.1, normal(300, seed=1) * 0.02 + 0.2))
    result = mixture(scores)
    assert result.separates
    assert result.weights == pytest.approx((0.7, 0.3), abs=0.02)
    assert result.means == pytest.approx((0.1, 0.2), abs=0.005)
    assert result.deviations == pytest.approx((0.01, 0.02), abs=0.003)
    assert "30%" in result.statement
    known, unknown = (
        weight * scipy.stats.norm.pdf(scores, mean, deviation)
        for weight, mean, deviation in zip(result.weights, result.means, result.deviations, strict=True)
    )
    np.testing.assert_allclose(result.posterior(scores), unknown / (known + unknown), atol=1e-9)
    assert result.posterior(torch.tensor([result.threshold], dtype=torch.float64)).item() == pytest.approx(0.5)
    assert result.means[0] < result.threshold < result.means[1]


def test_the_scale_of_scores_does_not_matter():
    scores = torch.cat((normal(50), normal(50, seed=1) + 6))
    a, b = mixture(scores), mixture(scores * 1e-9 + 1e-8)
    assert a.gain == pytest.approx(b.gain)
    assert a.posterior(scores).tolist() == pytest.approx(b.posterior(scores * 1e-9 + 1e-8).tolist(), abs=1e-6)


def test_scores_of_one_kind_are_not_separated():
    assert sum(mixture(normal(100, seed=seed)).separates for seed in range(20)) == 0
    assert mixture(normal(100)).statement == "the scores form one group"


@pytest.mark.slow
def test_a_single_outlier_is_not_a_kind():
    result = mixture(torch.cat((normal(9) * 1e-3, torch.ones(1))))
    assert result.gain > 10
    assert not result.separates
    assert result.statement == "1 distinct score lies apart from the rest, too few to count as a group"
    assert sum(mixture(normal(10, seed=seed)).separates for seed in range(40)) == 0
    copies = mixture(torch.cat((normal(20), normal(20)[0].expand(4))))
    assert (copies.gain > 10, copies.fewer, copies.separates) == (True, 1, False)
    assert mixture(torch.cat((normal(9) * 1e-3, 1 + normal(4, seed=1) * 1e-3))).separates


def test_equal_scores_are_one_kind():
    result = mixture(torch.full((9,), 0.3))
    assert not result.separates
    assert result.threshold is None
    assert result.posterior(torch.full((9,), 0.3)).tolist() == [0.5] * 9


@settings(deadline=None, max_examples=30)
@given(values=st.lists(st.floats(0, 0.25, width=32), min_size=4, max_size=12))
def test_any_scores_have_a_defined_mixture(values):
    scores = torch.tensor(values)
    result = mixture(scores)
    posterior = result.posterior(scores)
    assert posterior.isfinite().all()
    assert ((posterior >= 0) & (posterior <= 1)).all()
    assert result.threshold is None or math.isfinite(result.threshold)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mixture(torch.ones(3)), "4 images or more"),
        (lambda: mixture(torch.tensor([1.0, 2.0, 3.0, math.nan])), "NaN or infinite"),
    ],
)
def test_scores_that_no_mixture_can_be_fitted_to_are_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()
