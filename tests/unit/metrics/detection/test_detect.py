"""Detection against what can be worked out by hand, by simulation, and by other routes."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import repeat_xai as rx
from repeat_xai.metrics.detection import AGGREGATES, BASELINES, density, mahalanobis, mixture, nearest, quality, roc


def drawn(*sizes, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=sizes))


def test_aggregates_by_hand():
    maps = torch.arange(40.0).view(1, 5, 8)
    found = {name: aggregate(maps).item() for name, aggregate in AGGREGATES.items()}
    assert found["mean"] == found["median"] == 19.5
    assert found["top"] == 38.5
    assert found["entropy"] == pytest.approx(scipy.stats.entropy(np.arange(40)))


def test_a_mixture_is_found_again():
    scores = torch.cat((drawn(700) * 0.01 + 0.1, drawn(300, seed=1) * 0.02 + 0.2))
    found = mixture(scores)
    assert found.separates
    assert found.weights == pytest.approx((0.7, 0.3), abs=0.02)
    assert found.means == pytest.approx((0.1, 0.2), abs=0.005)
    assert found.deviations == pytest.approx((0.01, 0.02), abs=0.003)
    assert "30%" in found.statement
    known, unknown = (
        weight * scipy.stats.norm.pdf(scores, mean, deviation)
        for weight, mean, deviation in zip(found.weights, found.means, found.deviations, strict=True)
    )
    np.testing.assert_allclose(found.posterior(scores), unknown / (known + unknown), atol=1e-9)
    assert found.posterior(torch.tensor([found.threshold], dtype=torch.float64)).item() == pytest.approx(0.5)
    assert found.means[0] < found.threshold < found.means[1]


def test_the_scale_of_scores_does_not_matter():
    scores = torch.cat((drawn(50), drawn(50, seed=1) + 6))
    a, b = mixture(scores), mixture(scores * 1e-9 + 1e-8)
    assert a.gain == pytest.approx(b.gain)
    assert a.posterior(scores).tolist() == pytest.approx(b.posterior(scores * 1e-9 + 1e-8).tolist(), abs=1e-6)


def test_one_kind_is_said_to_be_one():
    assert sum(mixture(drawn(100, seed=seed)).separates for seed in range(20)) == 0
    assert mixture(drawn(100)).statement.startswith("no two kinds")


def test_one_image_apart_is_no_kind():
    found = mixture(torch.cat((drawn(9) * 1e-3, torch.ones(1))))
    assert found.gain > 10
    assert not found.separates
    assert found.statement == "images that stand apart: 1, too few to be a kind of their own"
    assert sum(mixture(drawn(10, seed=seed)).separates for seed in range(40)) == 0
    copies = mixture(torch.cat((drawn(20), drawn(20)[0].expand(4))))
    assert (copies.gain > 10, copies.fewer, copies.separates) == (True, 1, False)
    assert mixture(torch.cat((drawn(9) * 1e-3, 1 + drawn(4, seed=1) * 1e-3))).separates


def test_images_all_alike_are_one_kind():
    found = mixture(torch.full((9,), 0.3))
    assert not found.separates
    assert found.threshold is None
    assert found.posterior(torch.full((9,), 0.3)).tolist() == [0.5] * 9


@settings(deadline=None, max_examples=30)
@given(values=st.lists(st.floats(0, 0.25, width=32), min_size=4, max_size=12))
def test_any_scores_have_a_defined_mixture(values):
    scores = torch.tensor(values)
    found = mixture(scores)
    posterior = found.posterior(scores)
    assert posterior.isfinite().all()
    assert ((posterior >= 0) & (posterior <= 1)).all()
    assert found.threshold is None or math.isfinite(found.threshold)


def test_quality_is_the_chance_that_unknown_scores_higher():
    known, unknown = drawn(60), drawn(40, seed=1) + 1
    found = quality(known, unknown)
    pairs = (unknown[:, None] > known).double().mean().item()
    assert found.auroc == pytest.approx(pairs)
    cut = unknown.sort().values[2]  # 38 of 40 are found at or above it
    assert found.fpr95 == pytest.approx((known >= cut).double().mean().item())
    assert quality(unknown, known).auroc == pytest.approx(1 - pairs)


def test_a_roc_has_both_shares_at_every_cut():
    """Scores that tie move both shares at once."""
    known, unknown = (drawn(60) * 2).round(), (drawn(40, seed=1) * 2 + 1).round()
    found = roc(known, unknown)
    cuts = sorted({math.inf, *known.tolist(), *unknown.tolist()}, reverse=True)
    assert found.false.tolist() == pytest.approx([sum(s >= cut for s in known.tolist()) / 60 for cut in cuts])
    assert found.true.tolist() == pytest.approx([sum(s >= cut for s in unknown.tolist()) / 40 for cut in cuts])
    pairs = ((unknown[:, None] > known).double() + (unknown[:, None] == known).double() / 2).mean().item()
    assert found.area == pytest.approx(pairs)
    assert found.area == pytest.approx(quality(known, unknown).auroc)


def test_scores_all_alike_are_guessing():
    assert quality(torch.ones(30), torch.ones(10)) == (0.5, 0.25, 1.0)


def test_codes_by_hand():
    reference = torch.nn.functional.normalize(drawn(30, 5), dim=1) * 7
    code = drawn(1, 5, seed=1)
    away = (torch.nn.functional.normalize(reference) - torch.nn.functional.normalize(code)).norm(dim=1)
    assert nearest(code, reference).item() == pytest.approx(away.sort().values[9].item())
    many = drawn(20_000, 3) * torch.tensor([1.0, 2.0, 3.0])
    far = torch.tensor([[2.0, -4.0, 6.0]]).double()
    assert mahalanobis(far, many).item() == pytest.approx(math.sqrt(12), rel=0.02)


@pytest.mark.parametrize("name", BASELINES)
def test_strange_codes_stand_out(name):
    known, strange = drawn(80, 12), drawn(20, 12, seed=1)
    known[:, :6] += 4
    strange[:, 6:] += 4
    assert quality(*torch.split(BASELINES[name](torch.cat((known[40:], strange)), known[:40]), 40)).auroc > 0.95
    assert BASELINES[name](known).isfinite().all()


def test_density_is_that_of_a_normal_distribution():
    """Of codes that have one kind, the log density falls with the square of the distance."""
    known = drawn(4000, 2)
    near, far = density(torch.tensor([[0.0, 0.0], [0.0, 2.0]]).double(), known).tolist()
    assert far - near == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mixture(torch.ones(3)), "needs the scores of 4 images or more"),
        (lambda: mixture(torch.tensor([1.0, 2.0, 3.0, math.nan])), "NaN or infinite"),
        (lambda: quality(torch.ones(3), torch.ones(0)), "both known and unknown"),
        (lambda: quality(torch.ones(3), torch.tensor([math.inf])), "NaN or infinite"),
        (lambda: roc(torch.ones(0), torch.ones(3)), "both known and unknown"),
        (lambda: nearest(torch.ones(2, 3)), "give 4 or more"),
        (lambda: mahalanobis(torch.full((5, 3), math.nan)), "NaN or infinite"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(wrong, message):
    with pytest.raises(rx.RepeatError, match=message):
        wrong()
