"""Stated shares of votes against fresh ones."""

from dataclasses import replace

import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics import calibration


@pytest.fixture
def explanation(encoder, image):
    return rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=2)(encoder, image, seed=0)


def with_votes(explanation, share, seed):
    provenance = {**explanation.provenance, "seed": seed}
    return replace(explanation, vote_share=share.float(), provenance=provenance)


def test_true_shares_are_calibrated_and_wrong_ones_are_not(explanation):
    drawn = torch.Generator().manual_seed(0)
    truth = torch.rand(24, 20, generator=drawn)
    votes = torch.rand(400, 24, 20, generator=drawn) < truth
    fresh = with_votes(explanation, votes.float().mean(0), 1)
    right = calibration([with_votes(explanation, truth, 0)], [fresh])
    bold = calibration([with_votes(explanation, (truth > 0.5).float(), 0)], [fresh])
    assert right.error < 0.01
    assert right.brier == pytest.approx((truth * (1 - truth)).mean().item(), abs=0.01)
    assert bold.error == pytest.approx(0.25, abs=0.03)
    assert bold.brier > right.brier + 0.05
    assert torch.allclose(right.stated, right.seen, atol=0.03)
    assert right.pixels.sum() == pytest.approx(1)


def test_by_hand(explanation):
    stated = torch.zeros(24, 20)
    stated[0, 0], stated[0, 1] = 1.0, 0.5
    fresh = torch.zeros(24, 20)
    fresh[0, 0], fresh[0, 1], fresh[1, 1] = 0.9, 1.0, 1.0
    found = calibration([with_votes(explanation, stated, 0)], [with_votes(explanation, fresh, 1)], bins=2)
    n = 480
    assert found.pixels.tolist() == pytest.approx([(n - 2) / n, 2 / n])
    assert found.seen.tolist() == pytest.approx([1 / (n - 2), 0.95])
    assert found.error == pytest.approx((1 + abs(1.5 - 1.9)) / n)
    assert found.brier == pytest.approx((0.1 + 0.25 + 1) / n)
    assert found.flips == pytest.approx(1 / (n - 1))
    assert found.decided == pytest.approx((n - 1) / n)
    assert found.held == pytest.approx((1 / (n - 2), 0.9))


def test_exact_repeats_of_a_real_encoder_hold(encoder, image):
    """Ten repeats state shares in tenths; fresh ones come out so, on average."""
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=60), repeats=40)
    found = calibration([method(encoder, image, seed=0)], [method(encoder, image, seed=1)])
    assert found.error < 0.12
    assert found.flips < 0.01


def test_only_fresh_explanations_of_the_same_images_can_judge(explanation, encoder):
    other = rx.load_image(torch.rand(3, 24, 20), encoder)
    strange = rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=2)(encoder, other, seed=1)
    relax = rx.Relax(masks=4)(encoder, other, seed=2)
    for wrong, message in (
        (lambda: calibration([explanation], [explanation]), "give them another seed"),
        (lambda: calibration([explanation], [strange]), "give the same images"),
        (lambda: calibration([], []), "give one for each"),
        (lambda: calibration([relax], [strange]), "only explanations that cast votes"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            wrong()


def test_tenths_have_a_bin_each_though_float32_misses_them(explanation):
    share = (torch.arange(24 * 20) % 11).view(24, 20).float() / 10
    found = calibration([with_votes(explanation, share, 0)], [with_votes(explanation, share, 1)])
    tenths = [n / 10 for n in range(9)]
    assert found.stated[:9].tolist() == pytest.approx(tenths, abs=1e-6)
    assert found.error == 0
