"""A module as an encoder is run in evaluation mode and left as it was found."""

import copy

import pytest
import torch
from torch import nn

import repeat_xai as rx


def test_a_module_with_its_own_name_preprocessing_and_size():
    preprocessing = rx.Preprocessing(size=(96, 96), resize=120, mean=(0.1,), std=(0.2,))
    encoder = rx.load_encoder(nn.Flatten(), name="mine", preprocessing=preprocessing, size=48)
    assert encoder.name == "mine"
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((48, 48), 60)


def test_a_module_is_left_as_it_was(network):
    network.train()
    network[2].eval()
    before = copy.deepcopy(network)
    flags = [m.training for m in network.modules()]
    encoder = rx.load_encoder(network)
    image = rx.load_image(torch.randn(3, 24, 24), encoder)
    rx.Repeat(estimator="exact", base=rx.Relax(masks=8), repeats=2)(encoder, image, seed=0)
    assert [m.training for m in network.modules()] == flags
    assert all(p.requires_grad and p.grad is None for p in network.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in network.modules())
    for name, tensor in before.state_dict().items():
        assert torch.equal(tensor, network.state_dict()[name]), name


def test_training_flags_are_restored_when_the_module_fails():
    class Failing(nn.Module):
        def forward(self, images):
            raise RuntimeError("no")

    module = Failing().train()
    with pytest.raises(rx.RepeatError, match=r"^Failing fails: no$"):
        rx.load_encoder(module)(torch.zeros(1, 3, 8, 8))
    assert module.training
