"""Detection of poisoned images: closed forms, and what chance gives."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

import repeat_xai as rx
from repeat_xai.metrics.detection import detect_poison, mixture, quality


def normal(n, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=n))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_scores_far_apart_are_separated(share):
    result = detect_poison(normal(100), normal(100, 1) + 50, share=share, draws=5, seed=0)
    assert result.posterior == result.raw == (1.0, 0.0, 1.0, 1.0, 100, 0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_scores_of_one_kind_give_chance(share):
    result = detect_poison(normal(400), normal(400, 1), share=share, draws=20, seed=0)
    for part in result:
        assert part.low < 0.5 < part.high
        assert part.mean == pytest.approx(0.5, abs=0.1)


def test_the_raw_score_has_the_auroc_of_two_normal_distributions():
    """AUROC of N(0, 1) against N(1, 1) is Φ(1 / √2)."""
    result = detect_poison(normal(2000), normal(2000, 1) + 1, share=0.5, draws=4, seed=0)
    assert result.raw.mean == pytest.approx(scipy.stats.norm.cdf(1 / math.sqrt(2)), abs=0.02)
    reversed_ = detect_poison(normal(2000), normal(2000, 1) - 1, share=0.5, draws=4, seed=0)
    assert reversed_.raw.mean == pytest.approx(scipy.stats.norm.cdf(-1 / math.sqrt(2)), abs=0.02)


def test_no_image_is_both_clean_and_poisoned_and_draws_differ(monkeypatch):
    """Each score identifies its image: a whole number, with a half added where the image is poisoned."""
    calls = []
    monkeypatch.setattr(
        "repeat_xai.metrics.detection.poison_detection.quality", lambda *parts: calls.append(parts) or quality(*parts)
    )
    result = detect_poison(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=0)
    draws = calls[1::2]  # the calls between them judge log-odds
    for known, unknown in draws:
        assert (len(known), len(unknown)) == (35, 15)
        assert sorted([*known.tolist(), *(unknown - 0.5).tolist()]) == list(range(50))
    assert len({tuple(known.tolist()) for known, _ in draws}) == 3
    values = [quality(*parts).auroc for parts in draws]
    assert result.raw[:4] == pytest.approx(
        (np.mean(values), np.std(values, ddof=1), *np.quantile(values, [0.025, 0.975]))
    )
    again = detect_poison(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=0)
    assert again == result
    assert detect_poison(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=1).raw != result.raw


def test_the_posterior_is_that_of_the_mixture(monkeypatch):
    """Poisoned scores vary more, so that very low ones are likely poisoned as well, which the raw score misses."""
    calls = []
    monkeypatch.setattr(
        "repeat_xai.metrics.detection.poison_detection.quality", lambda *parts: calls.append(parts) or quality(*parts)
    )
    result = detect_poison(normal(200), normal(200, 1) * 9 + 4, share=0.5, draws=1, seed=0)
    (clean, poisoned), (known, unknown) = calls
    split = mixture(torch.cat((known, unknown)))
    np.testing.assert_allclose(clean.sigmoid(), split.posterior(known), atol=2e-2)
    np.testing.assert_allclose(poisoned.sigmoid(), split.posterior(unknown), atol=2e-2)
    assert result.posterior.mean == quality(clean, poisoned).auroc > result.raw.mean + 0.1
    assert result.posterior.deviation is None


def test_equal_scores_give_chance():
    result = detect_poison(torch.ones(10), torch.ones(10), share=0.4, draws=2, seed=0)
    assert result.posterior[:4] == result.raw[:4] == (0.5, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: detect_poison(torch.ones(3), torch.ones(3), share=0.5, seed=0), "the same 4 images or more"),
        (lambda: detect_poison(torch.ones(9), torch.ones(9), share=0.0, seed=0), "none clean or none poisoned"),
        (lambda: detect_poison(torch.ones(9), torch.ones(9), share=0.01, seed=0), "none clean or none poisoned"),
        (lambda: detect_poison(torch.ones(9), torch.ones(9), share=0.99, seed=0), "none clean or none poisoned"),
        (lambda: detect_poison(torch.ones(9), torch.full((9,), math.nan), share=0.5, seed=0), "NaN or infinite"),
        (lambda: detect_poison(torch.ones(9), torch.ones(9), share=0.5, draws=0, seed=0), "draws must be"),
    ],
)
def test_wrong_input_of_poison_detection_is_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()
