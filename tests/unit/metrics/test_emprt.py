"""eMPRT, the sanity check of the paper: how the map changes when the encoder is randomised."""

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import METRICS, emprt, randomise_encoder

SMALL = rx.Repeat(estimator="exact", base=rx.Relax(masks=30), repeats=3)


def test_weights_are_those_that_quantus_randomises():
    from quantus.helpers.model.pytorch_model import PyTorchModel

    network = torchvision.models.squeezenet1_1(weights=None).eval()
    steps = PyTorchModel(network, channel_first=True).get_random_layer_generator(order="top_down", seed=42)
    theirs = list(steps)[-1][1]
    ours = randomise_encoder(rx.load_encoder(network)).module
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert a.equal(b), name


def test_the_encoder_and_the_generators_state_are_unchanged(encoder):
    before = {key: value.clone() for key, value in encoder.module.state_dict().items()}
    state = torch.get_rng_state()
    randomised = randomise_encoder(encoder, "full")
    assert all(value.equal(before[key]) for key, value in encoder.module.state_dict().items())
    assert torch.get_rng_state().equal(state)
    assert not randomised.module[0].weight.equal(encoder.module[0].weight)
    assert "randomised (full, seed 43)" in randomised.weights


def test_only_full_randomises_attention_and_tokens():
    network = torchvision.models.VisionTransformer(32, 16, 1, 2, 12, 24)
    nn.init.normal_(network.class_token)
    nn.init.normal_(network.encoder.layers[0].self_attention.in_proj_weight)
    encoder = rx.load_encoder(network, size=32)
    partly, fully = (randomise_encoder(encoder, randomise).module for randomise in ("quantus", "full"))
    for read in (lambda n: n.class_token, lambda n: n.encoder.layers[0].self_attention.in_proj_weight):
        assert read(partly).equal(read(network))
        assert not read(fully).equal(read(network))
    other = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    nn.init.normal_(other.cls_token)
    randomised = randomise_encoder(rx.load_encoder(other), "full").module
    assert randomised.cls_token.flatten().sort().values.equal(other.cls_token.flatten().sort().values)


def histogram_entropy(values):
    """Return the entropy of a map's histogram, by numpy."""
    shares = np.histogram(values.numpy().astype(float), bins=100)[0] / values.numel()
    return -(shares[shares > 0] * np.log(shares[shares > 0])).sum()


@pytest.mark.parametrize("map_name", ["importance", "uncertainty"])
def test_it_is_the_relative_change_of_entropy(map_name, encoder, image):
    networks = (encoder, randomise_encoder(encoder))
    trained, random = (histogram_entropy(getattr(SMALL(network, image, seed=0), map_name)) for network in networks)
    values = emprt(SMALL, encoder, [image, image], map_name=map_name, seed=0)
    assert values.tolist() == pytest.approx([random / trained - 1] * 2)


def test_the_score_of_an_image_has_a_value_for_each_map(encoder, image):
    metric = METRICS["emprt"]
    values = metric.score(SMALL, encoder, image, seed=0)
    assert tuple(values) == metric.maps
    for name, value in values.items():
        assert value == emprt(SMALL, encoder, [image], map_name=name, seed=0).item()
    small = rx.load_encoder(nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 4)), precision="float32")
    assert set(metric.score(rx.Saliency(), small, image, seed=0)) == {"importance"}


def test_a_constant_map_is_undefined(encoder, image):
    explanation = SMALL(encoder, image, seed=0)

    def constant_if_trained(network, image, *, seed):
        trained = network is encoder
        return replace(explanation, uncertainty=torch.zeros(24, 20) if trained else explanation.uncertainty)

    assert emprt(constant_if_trained, encoder, [image], seed=0).isnan().all()


def test_wrong_input_of_emprt_is_refused(encoder, image):
    for call, message in (
        (lambda: emprt(SMALL, encoder, [], seed=0), "no images"),
        (lambda: emprt(lambda *_, seed: torch.ones(24, 20), encoder, [image], seed=0), "not an explanation"),
        (lambda: emprt(rx.Saliency(), rx.load_encoder(encoder.module.float()), [image], seed=0), "uncertainty"),
        (lambda: randomise_encoder(rx.load_encoder(nn.Flatten())), "no layer that can be reset"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()
