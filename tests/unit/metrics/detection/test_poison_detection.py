"""Poisoned images told from clean ones: closed forms, and what chance gives."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

import repeat_xai as rx
from repeat_xai.metrics.detection import mixture, quality
from repeat_xai.metrics.detection.poison_detection import detection


def drawn(n, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=n))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_scores_far_apart_are_told_apart(share):
    found = detection(drawn(100), drawn(100, 1) + 50, share=share, draws=5, seed=0)
    assert found.posterior == found.raw == (1.0, 0.0, 1.0, 1.0, 100, 0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_scores_of_one_kind_are_guessed(share):
    found = detection(drawn(400), drawn(400, 1), share=share, draws=20, seed=0)
    for part in found:
        assert part.low < 0.5 < part.high
        assert part.mean == pytest.approx(0.5, abs=0.1)


def test_the_raw_score_is_as_good_as_two_normal_distributions_are_apart():
    """AUROC of N(0, 1) against N(1, 1) is Φ(1 / √2)."""
    found = detection(drawn(2000), drawn(2000, 1) + 1, share=0.5, draws=4, seed=0)
    assert found.raw.mean == pytest.approx(scipy.stats.norm.cdf(1 / math.sqrt(2)), abs=0.02)
    reversed_ = detection(drawn(2000), drawn(2000, 1) - 1, share=0.5, draws=4, seed=0)
    assert reversed_.raw.mean == pytest.approx(scipy.stats.norm.cdf(-1 / math.sqrt(2)), abs=0.02)


def test_no_image_is_both_clean_and_poisoned_and_each_draw_is_its_own(monkeypatch):
    """Scores that name their image: whole numbers, and halves where it is poisoned."""
    seen = []
    monkeypatch.setattr(
        "repeat_xai.metrics.detection.poison_detection.quality", lambda *parts: seen.append(parts) or quality(*parts)
    )
    found = detection(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=0)
    draws = seen[1::2]  # the others are log-odds
    for known, unknown in draws:
        assert (len(known), len(unknown)) == (35, 15)
        assert sorted([*known.tolist(), *(unknown - 0.5).tolist()]) == list(range(50))
    assert len({tuple(known.tolist()) for known, _ in draws}) == 3
    values = [quality(*parts).auroc for parts in draws]
    assert found.raw[:4] == pytest.approx(
        (np.mean(values), np.std(values, ddof=1), *np.quantile(values, [0.025, 0.975]))
    )
    again = detection(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=0)
    assert again == found
    assert detection(torch.arange(50.0), torch.arange(50.0) + 0.5, share=0.3, draws=3, seed=1).raw != found.raw


def test_the_posterior_is_that_of_the_mixture(monkeypatch):
    """Poisoned scores spread wider, so that very low ones are likely poisoned too, which the raw score misses."""
    seen = []
    monkeypatch.setattr(
        "repeat_xai.metrics.detection.poison_detection.quality", lambda *parts: seen.append(parts) or quality(*parts)
    )
    found = detection(drawn(200), drawn(200, 1) * 9 + 4, share=0.5, draws=1, seed=0)
    (clean, poisoned), (known, unknown) = seen
    split = mixture(torch.cat((known, unknown)))
    np.testing.assert_allclose(clean.sigmoid(), split.posterior(known), atol=2e-2)
    np.testing.assert_allclose(poisoned.sigmoid(), split.posterior(unknown), atol=2e-2)
    assert found.posterior.mean == quality(clean, poisoned).auroc > found.raw.mean + 0.1
    assert found.posterior.deviation is None


def test_images_all_alike_are_guessed():
    found = detection(torch.ones(10), torch.ones(10), share=0.4, draws=2, seed=0)
    assert found.posterior[:4] == found.raw[:4] == (0.5, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: detection(torch.ones(3), torch.ones(3), share=0.5, seed=0), "the same 4 images or more"),
        (lambda: detection(torch.ones(9), torch.ones(9), share=0.0, seed=0), "none clean or none poisoned"),
        (lambda: detection(torch.ones(9), torch.ones(9), share=0.01, seed=0), "none clean or none poisoned"),
        (lambda: detection(torch.ones(9), torch.ones(9), share=0.99, seed=0), "none clean or none poisoned"),
        (lambda: detection(torch.ones(9), torch.full((9,), math.nan), share=0.5, seed=0), "NaN or infinite"),
        (lambda: detection(torch.ones(9), torch.ones(9), share=0.5, draws=0, seed=0), "draws must be"),
    ],
)
def test_what_cannot_be_told_is_refused(wrong, message):
    with pytest.raises(rx.RepeatError, match=message):
        wrong()
