"""REPEAT counts the votes of any stochastic base, refuses what is none, and records what it did."""

import numpy as np
import pytest
import torch
from small_methods import FunctionBase

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.methods.base import Base
from repeat_xai.seeds import fold


def base_of(*maps):
    """Return a base that gives these maps one after the other."""
    queue = iter(torch.tensor(m, dtype=torch.float64).expand(24, 20) for m in maps)
    return FunctionBase(lambda *_, seed: next(queue))


def striped(low, high):
    """Return a map that is `high` in every other row, from the first on, and `low` in the rest."""
    values = np.full((24, 20), low)
    values[::2] = high
    return values.tolist()


def exact(*maps, **options):
    """Return exact REPEAT over these maps, one a repeat."""
    return rx.Repeat(estimator="exact", base=base_of(*maps), repeats=len(maps), **options)


def random_map(*_, seed):
    return torch.rand(24, 20, generator=torch.Generator().manual_seed(seed % 2**63))


def test_two_repeats_by_hand(encoder, image):
    """Rows 0, 2, … have 4 and then 1, the others 2 and then 3: each pixel is important once, with weight 1."""
    explanation = exact(striped(2.0, 4.0), striped(3.0, 1.0))(encoder, image, seed=0)
    assert (explanation.importance == 0.5).all()
    assert (explanation.uncertainty == 0.25).all()
    assert (explanation.vote_share == 0.5).all()
    assert (explanation.verdict() == 0).all()


def test_weighted_and_binary_votes_by_hand(encoder, image):
    """Of the values 1, 3 and 4 with a mean of 8/3, the upper two are important, with weights 3/4 and 1."""
    values = torch.tensor([1.0, 3.0, 4.0, 1.0, 4.0]).repeat(24, 4).tolist()
    weighted = exact(values)(encoder, image, seed=0)
    binary = exact(values, votes="binary")(encoder, image, seed=0)
    assert weighted.importance[0, :3].tolist() == [0, 0.75, 1]
    assert binary.importance[0, :3].tolist() == [0, 1, 1]
    assert weighted.uncertainty[0, :3].tolist() == [0, 0.1875, 0]
    assert torch.equal(weighted.vote_share, binary.vote_share)


@pytest.mark.parametrize("threshold", ["mean", "otsu", "triangle", "li"])
@pytest.mark.parametrize("votes", ["weighted", "binary"])
@pytest.mark.parametrize("value", [0.0, 0.3, -2.0])
def test_a_constant_map_casts_no_vote(encoder, image, threshold, votes, value):
    explanation = exact([[value]], threshold=threshold, votes=votes)(encoder, image, seed=0)
    assert (explanation.importance == 0).all()
    assert (explanation.vote_share == 0).all()


@pytest.mark.parametrize(("low", "high"), [(-2.0, -1.0), (-1.0, 0.0), (-3.0, 1.0)])
def test_importance_at_or_below_zero_has_no_weight(encoder, image, low, high):
    explanation = exact(striped(low, high))(encoder, image, seed=0)
    assert explanation.importance.unique().tolist() == ([0, 1] if high > 0 else [0])
    assert explanation.vote_share[::2].eq(1).all()
    assert explanation.vote_share[1::2].eq(0).all()


def test_importance_of_both_signs_gives_a_probability(encoder, image):
    base = FunctionBase(lambda *_, seed: torch.randn(24, 20, generator=torch.Generator().manual_seed(seed >> 1)) - 0.5)
    explanation = rx.Repeat(estimator="exact", base=base, repeats=3)(encoder, image, seed=0)
    assert 0 <= explanation.importance.min() <= explanation.importance.max() <= 1


def test_a_pixel_at_the_cut_is_important(encoder, image):
    """A pixel is important where R ≥ τ, not R > τ: of 1, 2 and 3 with mean 2, two are."""
    values = torch.tensor([1.0, 2.0, 3.0, 2.0]).repeat(24, 5).tolist()
    explanation = exact(values, votes="binary")(encoder, image, seed=0)
    assert explanation.importance[0, :4].tolist() == [0, 1, 1, 1]


def test_any_object_with_an_importance_map_is_a_base(encoder, image):
    seeds = []

    class Mine:
        def importance(self, encoder, image, *, seed):
            seeds.append(seed)
            return random_map(seed=seed)

    explanation = rx.Repeat(estimator="exact", base=Mine(), repeats=5)(encoder, image, seed=1)
    assert seeds == [fold(1, "repeat", repeat) for repeat in range(5)]
    assert isinstance(Mine(), Base)
    assert explanation.provenance["method"]["base"].endswith("Mine")
    assert (
        explanation.importance.dtype == explanation.uncertainty.dtype == explanation.vote_share.dtype == torch.float32
    )


@pytest.mark.parametrize(
    ("importance", "error", "message"),
    [
        (torch.zeros(3, 3), ConfigurationError, r"\[3, 3\], not a map of \[24, 20\]"),
        (np.zeros((24, 20)), ConfigurationError, "ndarray"),
        (torch.full((24, 20), torch.nan), EncoderError, "NaN"),
    ],
    ids=["shape", "type", "nan"],
)
def test_a_base_that_gives_no_map_is_refused(encoder, image, importance, error, message):
    base = FunctionBase(lambda *_, seed: importance)
    with pytest.raises(error, match=message):
        rx.Repeat(estimator="exact", base=base)(encoder, image, seed=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rx.Repeat(repeats=0),
        lambda: rx.Repeat(estimator="exact", threshold="median"),
        lambda: rx.Relax(masks=0),
        lambda: rx.Relax(chunk=0),
    ],
    ids=["repeats", "threshold", "masks", "chunk"],
)
def test_options_out_of_range_are_refused(make):
    with pytest.raises(ConfigurationError):
        make()


def test_every_kernel_gives_a_probability_for_codes_of_both_signs(image):
    """The codes of a vision transformer have both signs, so similarities may have them too."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(27, 6))
    encoder = rx.load_encoder(network)
    for kernel in (rx.Cosine(), rx.Linear(), rx.Polynomial(), rx.Rbf()):
        method = rx.Repeat(estimator="exact", base=rx.Relax(masks=30, similarity=kernel), repeats=3)
        explanation = method(encoder, image, seed=0)
        assert explanation.importance.isfinite().all()
        assert 0 <= explanation.importance.min() <= explanation.importance.max() <= 1
        assert 0 < explanation.vote_share.mean() < 1


def test_similarities_that_are_nearly_equal_keep_their_contrast(image):
    """The similarities of an untrained encoder may differ in the tenth digit only; the map must still show them."""
    far = torch.tensor([1e5, 0.0], dtype=torch.float64)

    class NearlyConstant(torch.nn.Module):
        def forward(self, images):
            return far + images.double().mean((2, 3))[:, :2]

    encoder = rx.load_encoder(NearlyConstant())
    relax = rx.Relax(masks=40)
    importance = relax.importance(encoder, image, seed=0)
    assert 0 < (importance.max() - importance.min()).item() < 1e-9
    assert relax(encoder, image, seed=0).uncertainty.min() > 0
    assert 0 < rx.Repeat(estimator="exact", base=relax, repeats=2)(encoder, image, seed=0).vote_share.mean() < 1


def test_pixels_that_no_mask_keeps_have_no_importance(encoder, image):
    relax = rx.Relax(masks=2, grid=rx.Grid(cells=7, keep=0.02))
    explanation = relax(encoder, image, seed=0)
    assert (explanation.importance == 0).any()
    assert explanation.importance.isfinite().all()
    assert explanation.uncertainty.isfinite().all()


def test_the_provenance_suffices_to_make_the_explanation_again(encoder, image):
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


@pytest.mark.slow
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
def test_over_another_stochastic_base_it_equals_a_loop_of_its_equations(base, encoder, image):
    explanation = rx.Repeat(base=base, estimator="exact", repeats=4)(encoder, image, seed=5)
    p = share = 0.0
    for repeat in range(4):
        importance = base.importance(encoder, image, seed=fold(5, "repeat", repeat))
        vote = (importance >= importance.mean()).double()
        p = p + vote * (importance / importance.max()).clamp_min(0) / 4
        share = share + vote / 4
    assert torch.allclose(explanation.importance, p.float(), atol=1e-6)
    assert torch.allclose(explanation.uncertainty, (p * (1 - p)).float(), atol=1e-6)
    assert torch.allclose(explanation.vote_share, share.float(), atol=1e-6)
    assert explanation.provenance["encoder_calls"] == 4 * base.calls


@pytest.mark.parametrize("base", [rx.Saliency(), rx.Occlusion(), rx.Attribution(name="zero", function=lambda g, x: x)])
def test_a_deterministic_base_is_refused(base):
    with pytest.raises(ConfigurationError, match="same map whatever the seed"):
        rx.Repeat(base=base)


def test_a_base_that_ignores_its_seed_is_refused_when_it_is_run(encoder, image):
    values = torch.rand(24, 20)
    with pytest.raises(ConfigurationError, match="same map whatever the seed"):
        rx.Repeat(estimator="exact", base=FunctionBase(lambda *_, seed: values))(encoder, image, seed=0)
    blank = rx.Repeat(estimator="exact", base=FunctionBase(lambda *_, seed: 0 * values))(encoder, image, seed=0)
    assert blank.importance.max() == 0


def upper_tenth(maps):
    return maps.flatten(1).quantile(0.9, dim=1)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_a_threshold_may_be_a_function(encoder, image, estimator):
    def my_mean(maps):
        return maps.mean((1, 2))

    options = {"estimator": estimator, "base": rx.Relax(masks=50), "repeats": 3, "budget": 256}
    named = rx.Repeat(threshold="mean", **options)(encoder, image, seed=4)
    own = rx.Repeat(threshold=my_mean, **options)(encoder, image, seed=4)
    assert all(torch.equal(values, own.maps[kind]) for kind, values in named.maps.items())
    assert own.provenance["method"]["threshold"].endswith("my_mean")
    assert own.provenance["method"] | {"threshold": "mean"} == named.provenance["method"]
    higher = rx.Repeat(threshold=upper_tenth, **options)(encoder, image, seed=4)
    assert higher.vote_share.mean().item() == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize("estimator", ["exact", "fast"])
@pytest.mark.parametrize(
    "threshold",
    [lambda maps: maps.mean(), lambda maps: maps, lambda maps: 0.5, lambda maps: None],
    ids=["scalar", "maps", "number", "nothing"],
)
def test_a_threshold_that_does_not_return_one_number_per_map_is_refused(encoder, image, estimator, threshold):
    method = rx.Repeat(threshold=threshold, estimator=estimator, base=rx.Relax(masks=50), repeats=2, budget=256)
    with pytest.raises(ConfigurationError, match="threshold") as refusal:
        method(encoder, image)
    assert "\n" not in str(refusal.value)
