"""MPRT: how a map changes as the encoder is randomised layer by layer."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
import torchvision
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import METRICS, mprt, randomise_encoder, randomise_layer_by_layer, spearman, ssim

SMALL = rx.Relax(masks=30)


def nested():
    """Return a network of nested layers, some of which cannot be reset, with a batch norm that has statistics."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        block = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        network = nn.Sequential(nn.Conv2d(3, 4, 5, stride=2), nn.PReLU(), block, nn.AdaptiveAvgPool2d(2), nn.Flatten())
        network.append(nn.Linear(24, 8))
        network(torch.randn(8, 3, 24, 20))
    return network.eval()


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_layers_and_weights_are_those_of_quantus(order):
    from quantus.helpers.model.pytorch_model import PyTorchModel

    network = nested()
    names = []
    theirs = PyTorchModel(network, channel_first=True).get_random_layer_generator(order=order, seed=42)
    for (name, model), (layer, randomised) in zip(
        theirs, randomise_layer_by_layer(rx.load_encoder(network), order=order), strict=True
    ):
        assert name == layer
        names.append(name)
        for (key, a), b in zip(randomised.module.state_dict().items(), model.state_dict().values(), strict=True):
            assert a.equal(b), (layer, key)
    assert names == ["5", "2.1", "2.0", "1", "0"][:: 1 if order == "top_down" else -1]


def test_the_last_step_is_fully_randomised_and_the_encoder_is_unchanged(encoder):
    before = {key: value.clone() for key, value in encoder.module.state_dict().items()}
    state = torch.get_rng_state()
    steps = list(randomise_layer_by_layer(encoder, "full"))
    whole = randomise_encoder(encoder, "full").module.state_dict()
    assert all(value.equal(whole[key]) for key, value in steps[-1][1].module.state_dict().items())
    assert all(value.equal(before[key]) for key, value in encoder.module.state_dict().items())
    assert torch.get_rng_state().equal(state)
    assert steps[0][1].module[0].weight.equal(before["0.weight"])
    assert steps[0][1].weights.endswith("randomised (full, top_down) as far as 3")


def test_only_full_counts_attention_and_tokens_as_layers():
    network = torchvision.models.VisionTransformer(32, 16, 1, 2, 12, 24)
    encoder = rx.load_encoder(network, size=32)
    partly, fully = (
        [name for name, _ in randomise_layer_by_layer(encoder, randomise)] for randomise in ("quantus", "full")
    )
    assert set(fully) - set(partly) == {
        "VisionTransformer",
        "encoder",
        "encoder.layers.encoder_layer_0.self_attention",
    }
    assert [name for name in fully if name in partly] == partly


@pytest.fixture
def method(encoder, image):
    """A method whose importance depends on the image and the first layer alone, and whose uncertainty is constant."""
    explanation = SMALL(encoder, image, seed=0)

    def explain(encoder, image, *, seed):
        weight = encoder.module[0].weight.detach()[0, 0].repeat(5, 4).to(image.pixels)
        return replace(
            explanation, importance=image.pixels[0, :, :] + 9 * weight[:24, :20], uncertainty=torch.ones(24, 20)
        )

    return explain


def test_a_map_changes_with_the_layers_it_depends_on(method, encoder, image):
    alone = mprt(method, encoder, [image, image], order="independent", seed=0)
    assert alone.layers == ("0", "2", "3")
    np.testing.assert_allclose(alone.spearman[1:], 1)
    np.testing.assert_allclose(alone.ssim[1:], 1)
    randomised = method(dict(randomise_layer_by_layer(encoder, order="independent"))["0"], image, seed=0)
    trained = method(encoder, image, seed=0)
    expected = scipy.stats.spearmanr(trained.importance.flatten(), randomised.importance.flatten()).statistic
    assert alone.spearman[0].tolist() == pytest.approx([expected] * 2, abs=1e-12)
    assert expected < 0.9
    down = mprt(method, encoder, [image], order="top_down", seed=0)
    assert down.layers == ("3", "2", "0")
    assert down.spearman[:, 0].tolist() == pytest.approx([1, 1, expected])
    up = mprt(method, encoder, [image], order="bottom_up", seed=0)
    assert up.spearman[:, 0].tolist() == pytest.approx([expected] * 3)


def test_constant_maps_are_undefined(method, encoder, image):
    result = mprt(method, encoder, [image], map_name="uncertainty", seed=0)
    assert result.spearman.isnan().all()
    assert result.ssim.isnan().all()


@pytest.mark.parametrize("randomise", ["quantus", "full"])
def test_maps_of_both_encoders_are_drawn_from_the_same_masks(encoder, image, randomise):
    result = mprt(SMALL, encoder, [image], randomise=randomise, seed=5)
    trained = SMALL(encoder, image, seed=5).importance
    for i, (_, randomised) in enumerate(randomise_layer_by_layer(encoder, randomise)):
        other = SMALL(randomised, image, seed=5).importance
        assert result.spearman[i].item() == spearman(trained, other).item()
        assert result.ssim[i].item() == ssim(trained, other).item()
    assert result.spearman.shape == result.ssim.shape == (3, 1)


def test_the_score_of_an_image_is_the_mean_over_layers(encoder, image):
    metric = METRICS["mprt"]
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=20), repeats=3)
    values = metric.score(method, encoder, image, seed=5)
    assert tuple(values) == metric.maps
    for name, value in values.items():
        layers = mprt(method, encoder, [image], map_name=name, seed=5).spearman[:, 0]
        assert value == pytest.approx(layers.mean().item(), abs=1e-12)


def test_layers_with_a_constant_map_are_left_out_of_the_mean(method, encoder, image):
    """The importance is constant once the first layer, the last to be randomised, has lost its weights."""
    trained = encoder.module[0].weight

    def explain(encoder, image, *, seed):
        explanation = method(encoder, image, seed=seed)
        changed = not encoder.module[0].weight.equal(trained)
        return replace(explanation, importance=torch.ones(24, 20) if changed else explanation.importance)

    values = METRICS["mprt"].score(explain, encoder, image, seed=0)
    assert values["importance"] == pytest.approx(1)
    assert math.isnan(values["uncertainty"]), "constant in every layer"


def test_a_method_without_uncertainty_has_a_score_of_importance_alone(image):
    encoder = rx.load_encoder(
        nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 4)), precision="float32"
    )
    assert set(METRICS["mprt"].score(rx.Saliency(), encoder, image, seed=0)) == {"importance"}


def test_wrong_input_of_mprt_is_refused(encoder):
    for call, message in (
        (lambda: mprt(SMALL, encoder, [], seed=0), "no images"),
        (lambda: list(randomise_layer_by_layer(rx.load_encoder(nn.Flatten()))), "no layer that can be reset"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()
