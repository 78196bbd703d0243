"""REPEAT over any base: votes, weights, guards and provenance."""

import numpy as np
import pytest
import torch

import repeat_xai as rx
from repeat_xai.methods.base import Importance
from repeat_xai.seeds import fold


def stack(*maps):
    """A base that gives these maps, one a repeat."""
    queue = iter(torch.tensor(m, dtype=torch.float64).expand(24, 20) for m in maps)
    return lambda encoder, image, seed: next(queue)


def checker(low, high):
    values = np.full((24, 20), low)
    values[::2] = high
    return values.tolist()


def test_by_hand(encoder, image):
    """Rows 0, 2, … score 4 then 1; the others 2 then 3: each is important once, with weight 1."""
    found = rx.Repeat(estimator="exact", base=stack(checker(2.0, 4.0), checker(3.0, 1.0)), repeats=2)(
        encoder, image, seed=0
    )
    assert (found.importance == 0.5).all()
    assert (found.uncertainty == 0.25).all()
    assert (found.vote_share == 0.5).all()
    assert (found.verdict() == 0).all()


def test_votes_weighted_and_binary(encoder, image):
    """Three values 1, 3, 4 with mean 8/3: the upper two pass, and weigh 3/4 and 1."""
    values = torch.tensor([1.0, 3.0, 4.0, 1.0, 4.0]).repeat(24, 4).tolist()
    weighted = rx.Repeat(estimator="exact", base=stack(values), repeats=1)(encoder, image, seed=0)
    binary = rx.Repeat(estimator="exact", base=stack(values), repeats=1, votes="binary")(encoder, image, seed=0)
    assert weighted.importance[0, :3].tolist() == [0, 0.75, 1]
    assert binary.importance[0, :3].tolist() == [0, 1, 1]
    assert weighted.uncertainty[0, :3].tolist() == [0, 0.1875, 0]
    assert torch.equal(weighted.vote_share, binary.vote_share)


@pytest.mark.parametrize("threshold", ["mean", "otsu", "triangle", "li"])
@pytest.mark.parametrize("votes", ["weighted", "binary"])
@pytest.mark.parametrize("value", [0.0, 0.3, -2.0])
def test_a_constant_map_casts_no_vote(encoder, image, threshold, votes, value):
    method = rx.Repeat(estimator="exact", base=stack([[value]]), repeats=1, threshold=threshold, votes=votes)
    found = method(encoder, image, seed=0)
    assert (found.importance == 0).all()
    assert (found.vote_share == 0).all()


@pytest.mark.parametrize(("low", "high"), [(-2.0, -1.0), (-1.0, 0.0), (-3.0, 1.0)])
def test_importance_at_or_below_zero_weighs_nothing(encoder, image, low, high):
    found = rx.Repeat(estimator="exact", base=stack(checker(low, high)), repeats=1)(encoder, image, seed=0)
    assert found.importance.unique().tolist() == ([0, 1] if high > 0 else [0])
    assert found.vote_share[::2].eq(1).all()
    assert found.vote_share[1::2].eq(0).all()


def test_mixed_signs_stay_a_probability(encoder, image):
    def drawn(*_, seed):
        return torch.randn(24, 20, generator=torch.Generator().manual_seed(seed % 2**63)) - 0.5

    found = rx.Repeat(estimator="exact", base=drawn, repeats=3)(encoder, image, seed=0)
    assert 0 <= found.importance.min() <= found.importance.max() <= 1


def test_a_pixel_at_the_cut_is_important(encoder, image):
    """R ≥ τ, not R > τ: of 1, 2 and 3 with mean 2, two pass."""
    values = torch.tensor([1.0, 2.0, 3.0, 2.0]).repeat(24, 5).tolist()
    found = rx.Repeat(estimator="exact", base=stack(values), repeats=1, votes="binary")(encoder, image, seed=0)
    assert found.importance[0, :4].tolist() == [0, 1, 1, 1]


def test_any_callable_is_a_base(encoder, image):
    seeds = []

    def mine(encoder, image, seed):
        seeds.append(seed)
        return torch.rand(24, 20, generator=torch.Generator().manual_seed(seed % 2**63))

    found = rx.Repeat(estimator="exact", base=mine, repeats=5)(encoder, image, seed=1)
    assert len(set(seeds)) == 5
    assert isinstance(mine, Importance)
    assert found.provenance["method"]["base"].endswith("mine")
    assert found.importance.dtype == found.uncertainty.dtype == found.vote_share.dtype == torch.float32


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (lambda *_, seed: torch.zeros(3, 3), r"\[3, 3\], not a map of \[24, 20\]"),
        (lambda *_, seed: np.zeros((24, 20)), "ndarray"),
        (lambda *_, seed: torch.full((24, 20), torch.nan), "NaN"),
    ],
)
def test_a_base_that_gives_no_map(encoder, image, base, message):
    with pytest.raises(rx.RepeatError, match=message):
        rx.Repeat(estimator="exact", base=base)(encoder, image, seed=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rx.Repeat(repeats=0),
        lambda: rx.Repeat(estimator="exact", threshold="median"),
        lambda: rx.Relax(masks=0),
        lambda: rx.Relax(chunk=0),
    ],
)
def test_nonsense_is_refused(make):
    with pytest.raises(rx.RepeatError):
        make()


def test_signed_codes_and_every_kernel(image):
    """A ViT's codes have both signs, so similarities may too."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(27, 6))
    encoder = rx.load_encoder(network)
    for kernel in (rx.Cosine(), rx.Linear(), rx.Polynomial(), rx.Rbf()):
        found = rx.Repeat(estimator="exact", base=rx.Relax(masks=30, similarity=kernel), repeats=3)(
            encoder, image, seed=0
        )
        assert found.importance.isfinite().all()
        assert 0 <= found.importance.min() <= found.importance.max() <= 1
        assert 0 < found.vote_share.mean() < 1


def test_nearly_alike_similarities_keep_their_contrast(image):
    """An untrained encoder's similarities may differ in the tenth digit only; the map must still be theirs."""
    far = torch.tensor([1e5, 0.0], dtype=torch.float64)

    class Faint(torch.nn.Module):
        def forward(self, images):
            return far + images.double().mean((2, 3))[:, :2]

    encoder = rx.load_encoder(Faint())
    relax = rx.Relax(masks=40)
    found, explained = relax(encoder, image, seed=0), relax.explain(encoder, image, seed=0)
    assert 0 < (found.max() - found.min()).item() < 1e-9
    assert explained.uncertainty.min() > 0
    assert 0 < rx.Repeat(estimator="exact", base=relax, repeats=2)(encoder, image, seed=0).vote_share.mean() < 1


def test_pixels_that_no_mask_keeps_have_no_importance(encoder, image):
    relax = rx.Relax(masks=2, grid=rx.Grid(cells=7, keep=0.02))
    found = relax.explain(encoder, image, seed=0)
    assert (found.importance == 0).any()
    assert found.importance.isfinite().all()
    assert found.uncertainty.isfinite().all()


def test_provenance_is_enough_to_make_it_again(encoder, image):
    method = rx.Repeat(
        estimator="exact", base=rx.Relax(masks=10, grid=rx.Grid(keep=0.4)), repeats=2, threshold="li", votes="binary"
    )
    made = method(encoder, image, seed=9).provenance
    assert made["method"]["base"]["grid"] == {"name": "Grid", "cells": 7, "keep": 0.4, "style": "relax"}
    assert made["method"]["base"]["similarity"] == {"name": "Cosine"}
    assert (made["method"]["threshold"], made["method"]["votes"], made["seed"]) == ("li", "binary", 9)
    assert made["encoder"]["pool"] == "none"
    assert made["image"]["preprocessing"] == "none"
    assert made["seconds"] > 0
    assert made["finished"].startswith("20")
    assert made["image"]["sha256"] == image.photo.digest
    packages = {"torch", "timm", "numpy", "torchvision", "PIL", "onnxruntime", "captum", "scikit-learn", "scikit-image"}
    assert set(made["versions"]) - {"transformers"} == packages | {"python"}
    assert made["repeat-xai"] == rx.__version__
    assert eval(repr(method), {name: getattr(rx, name) for name in rx.__all__}) == method


@pytest.mark.parametrize(
    "base",
    [
        rx.KernelShap(samples=20, features=rx.Squares(cells=3)),
        rx.Lime(samples=20, features=rx.Squares(cells=3)),
        rx.GradientShap(samples=3),
        rx.SmoothGrad(samples=3),
        rx.SmoothGrad(samples=3, moment="variance"),
    ],
)
def test_over_another_stochastic_base_it_is_the_loop_of_the_equations(base, encoder, image):
    found = rx.Repeat(base=base, estimator="exact", repeats=4)(encoder, image, seed=5)
    p = share = 0.0
    for repeat in range(4):
        importance = base(encoder, image, seed=fold(5, "repeat", repeat))
        vote = (importance >= importance.mean()).double()
        p = p + vote * (importance / importance.max()).clamp_min(0) / 4
        share = share + vote / 4
    assert torch.allclose(found.importance, p.float(), atol=1e-6)
    assert torch.allclose(found.uncertainty, (p * (1 - p)).float(), atol=1e-6)
    assert torch.allclose(found.vote_share, share.float(), atol=1e-6)
    assert found.provenance["encoder_calls"] == 4 * base.calls


@pytest.mark.parametrize("base", [rx.Saliency(), rx.Occlusion(), rx.Attribution(name="zero", function=lambda g, x: x)])
def test_a_deterministic_base_is_refused_with_the_reason(base):
    with pytest.raises(rx.RepeatError, match="finds the same whatever the seed: all repeats would vote alike"):
        rx.Repeat(base=base)


def test_a_function_that_ignores_its_seed_is_found_out(encoder, image):
    values = torch.rand(24, 20)
    with pytest.raises(rx.RepeatError, match="the base finds the same whatever the seed"):
        rx.Repeat(estimator="exact", base=lambda *_, seed: values)(encoder, image, seed=0)
    blank = rx.Repeat(estimator="exact", base=lambda *_, seed: 0 * values)(encoder, image, seed=0)
    assert blank.importance.max() == 0
