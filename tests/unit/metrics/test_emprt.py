"""The sanity check of the paper: what is left when the encoder has forgotten everything."""

from dataclasses import replace

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import emprt, randomised

SMALL = rx.Repeat(estimator="exact", base=rx.Relax(masks=30), repeats=3)


def test_it_is_as_quantus_randomises():
    from quantus.helpers.model.pytorch_model import PyTorchModel

    network = torchvision.models.squeezenet1_1(weights=None).eval()
    steps = PyTorchModel(network, channel_first=True).get_random_layer_generator(order="top_down", seed=42)
    theirs = list(steps)[-1][1]
    ours = randomised(rx.load_encoder(network)).module
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert a.equal(b), name


def test_the_encoder_and_the_generators_are_left_alone(encoder):
    before = {key: value.clone() for key, value in encoder.module.state_dict().items()}
    state = torch.get_rng_state()
    blank = randomised(encoder, "full")
    assert all(value.equal(before[key]) for key, value in encoder.module.state_dict().items())
    assert torch.get_rng_state().equal(state)
    assert not blank.module[0].weight.equal(encoder.module[0].weight)
    assert "randomised (full, seed 43)" in blank.weights


def test_only_full_reaches_attention_and_tokens():
    network = torchvision.models.VisionTransformer(32, 16, 1, 2, 12, 24)
    nn.init.normal_(network.class_token)
    nn.init.normal_(network.encoder.layers[0].self_attention.in_proj_weight)
    encoder = rx.load_encoder(network, size=32)
    kept, gone = (randomised(encoder, how).module for how in ("quantus", "full"))
    for read in (lambda n: n.class_token, lambda n: n.encoder.layers[0].self_attention.in_proj_weight):
        assert read(kept).equal(read(network))
        assert not read(gone).equal(read(network))
    other = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    nn.init.normal_(other.cls_token)
    blank = randomised(rx.load_encoder(other), "full").module
    assert blank.cls_token.flatten().sort().values.equal(other.cls_token.flatten().sort().values)


@pytest.mark.parametrize("of", ["importance", "uncertainty"])
def test_it_is_the_relative_change_of_entropy(of, encoder, image):
    found = emprt(SMALL, encoder, [image, image], of=of, seed=0)
    maps = [getattr(SMALL(one, image, seed=0), of).numpy() for one in (encoder, randomised(encoder))]
    entropies = []
    for map_ in maps:
        shares = np.histogram(map_.astype(float), bins=100)[0] / map_.size
        entropies.append(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    assert found.tolist() == pytest.approx([entropies[1] / entropies[0] - 1] * 2)


def test_a_constant_map_has_no_entropy_to_compare_with(encoder, image):
    found = SMALL(encoder, image, seed=0)

    def blank_then_not(one, image, *, seed):
        trained = one is encoder
        return replace(found, uncertainty=torch.zeros(24, 20) if trained else found.uncertainty)

    assert emprt(blank_then_not, encoder, [image], seed=0).isnan().all()


def test_what_cannot_be_checked_is_refused(encoder, image):
    for wrong, message in (
        (lambda: emprt(SMALL, encoder, [], seed=0), "no images"),
        (lambda: emprt(rx.Relax(masks=4), encoder, [image], seed=0), "Relax().explain"),
        (lambda: randomised(rx.load_encoder(nn.Flatten())), "no layer that can be reset"),
    ):
        with pytest.raises(rx.RepeatError, match=message.replace("(", r"\(").replace(")", r"\)")):
            wrong()
