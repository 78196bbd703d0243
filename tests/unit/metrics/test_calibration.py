"""Calibration: the stated share of votes compared with the share of fresh repeats."""

from dataclasses import replace

import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics import METRICS, calibration
from repeat_xai.seeds import fold


@pytest.fixture
def explanation(encoder, image):
    return rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=2)(encoder, image, seed=0)


def with_votes(explanation, share, seed):
    provenance = {**explanation.provenance, "seed": seed}
    return replace(explanation, vote_share=share.float(), provenance=provenance)


def test_true_shares_are_calibrated_and_overconfident_ones_are_not(explanation):
    generator = torch.Generator().manual_seed(0)
    truth = torch.rand(24, 20, generator=generator)
    votes = torch.rand(400, 24, 20, generator=generator) < truth
    fresh = with_votes(explanation, votes.float().mean(0), 1)
    right = calibration([with_votes(explanation, truth, 0)], [fresh])
    overconfident = calibration([with_votes(explanation, (truth > 0.5).float(), 0)], [fresh])
    assert right.error < 0.01
    assert right.brier == pytest.approx((truth * (1 - truth)).mean().item(), abs=0.01)
    assert overconfident.error == pytest.approx(0.25, abs=0.03)
    assert overconfident.brier > right.brier + 0.05
    assert torch.allclose(right.stated, right.observed, atol=0.03)
    assert right.pixels.sum() == pytest.approx(1)


def test_bins_errors_and_verdicts_by_hand(explanation):
    stated = torch.zeros(24, 20)
    stated[0, 0], stated[0, 1] = 1.0, 0.5
    fresh = torch.zeros(24, 20)
    fresh[0, 0], fresh[0, 1], fresh[1, 1] = 0.9, 1.0, 1.0
    result = calibration([with_votes(explanation, stated, 0)], [with_votes(explanation, fresh, 1)], bins=2)
    n = 480
    assert result.pixels.tolist() == pytest.approx([(n - 2) / n, 2 / n])
    assert result.observed.tolist() == pytest.approx([1 / (n - 2), 0.95])
    assert result.error == pytest.approx((1 + abs(1.5 - 1.9)) / n)
    assert result.brier == pytest.approx((0.1 + 0.25 + 1) / n)
    assert result.flips == pytest.approx(1 / (n - 1))
    assert result.decided == pytest.approx((n - 1) / n)
    assert result.held == pytest.approx((1 / (n - 2), 0.9))


def test_exact_repeats_are_calibrated(encoder, image):
    """The shares of forty repeats are, on average, those of forty fresh ones."""
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=60), repeats=40)
    result = calibration([method(encoder, image, seed=0)], [method(encoder, image, seed=1)])
    assert result.error < 0.12
    assert result.flips < 0.01


def test_explanations_that_cannot_judge_are_refused(explanation, encoder):
    other = rx.load_image(torch.rand(3, 24, 20), encoder)
    of_other_image = rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=2)(encoder, other, seed=1)
    without_votes = rx.Relax(masks=4)(encoder, other, seed=2)
    for call, message in (
        (lambda: calibration([explanation], [explanation]), "another seed"),
        (lambda: calibration([explanation], [of_other_image]), "same images"),
        (lambda: calibration([], []), "one for each"),
        (lambda: calibration([without_votes], [of_other_image]), "votes"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()


def test_each_tenth_has_a_bin_of_its_own_despite_rounding(explanation):
    share = (torch.arange(24 * 20) % 11).view(24, 20).float() / 10
    result = calibration([with_votes(explanation, share, 0)], [with_votes(explanation, share, 1)])
    tenths = [n / 10 for n in range(9)]
    assert result.stated[:9].tolist() == pytest.approx(tenths, abs=1e-6)
    assert result.error == 0


@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_the_score_of_an_image_is_its_error_against_fresh_exact_repeats(estimator, encoder, image):
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=20), repeats=5)
    exact = replace(method, estimator="exact")
    fresh = exact(encoder, image, seed=fold(3, "calibration"))
    expected = calibration([method(encoder, image, seed=3)], [fresh]).error
    assert METRICS["calibration"].score(method, encoder, image, seed=3) == {"vote_share": expected}
    assert expected > 0


def test_a_method_without_votes_has_no_score(encoder, image):
    with pytest.raises(rx.RepeatError, match="casts no votes"):
        METRICS["calibration"].score(rx.Relax(masks=4), encoder, image, seed=0)
