"""Loading a module tries it once, on a copy: a wrong type of output is refused, and nothing else is noticed."""

import threading
import warnings
from typing import NamedTuple

import pytest
import torch
from hostile.torch_settings import unchanged
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering


class Features(NamedTuple):
    """A tuple with names, as detection networks return it."""

    codes: torch.Tensor


class Returning(nn.Module):
    """Return what a function makes of the mean colours; count the calls and change every kind of state."""

    def __init__(self, make):
        super().__init__()
        self.make, self.calls, self.sizes = make, 0, []
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, images):
        self.calls += 1
        self.sizes.append(tuple(images.shape[1:]))
        self.scale.data.add_(1)
        self.seen.add_(len(images))
        return self.make(images.mean((2, 3)))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda codes: {"features": codes}, "dict"),
        (lambda codes: (codes, codes), "tuple"),
        (lambda codes: [codes], "list"),
        (lambda codes: Features(codes), "Features"),
        (lambda codes: codes.numpy(), "ndarray"),
        (lambda codes: None, "NoneType"),
    ],
)
@pytest.mark.parametrize("pool", [None, "avg"])
def test_an_output_that_is_no_tensor_is_refused_when_the_module_is_loaded(make, kind, pool):
    with pytest.raises(rx.RepeatError, match=f"mine: returns {kind}") as caught:
        rx.load_encoder(Returning(make), name="mine", pool=pool)
    assert "\n" not in str(caught.value)


def test_the_trial_leaves_the_module_and_torch_as_they_were():
    def disturb(codes):
        warnings.warn("hello", stacklevel=1)
        torch.manual_seed(3)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(True)
        return codes + torch.rand(1)

    module = Returning(disturb).train()
    with warnings.catch_warnings(), metering() as meter, unchanged():
        warnings.simplefilter("error")
        rx.load_encoder(module, size=32)
    assert (module.calls, module.sizes, meter.calls) == (0, [], 0)
    assert (module.scale.item(), module.seen.item(), module.training) == (1, 0, True)


def test_the_trial_is_given_an_image_of_the_encoders_size():
    sizes = []

    def noted(codes):
        sizes.append(codes.shape)
        return codes

    grey = rx.Preprocessing(size=(12, 8), resize=(12, 8), mean=(0.0,), std=(1.0,))
    rx.load_encoder(Returning(noted), preprocessing=grey)
    assert sizes == [(1, 1)]


class Locked(Returning):
    """A module that cannot be copied."""

    def __init__(self, make):
        super().__init__(make)
        self.lock = threading.Lock()


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(7, 3),
        nn.Unflatten(1, (5, 4)),
        nn.LazyLinear(3),
        Returning(lambda codes: codes.reshape(17, 23)),
        Returning(lambda codes: codes[99]),
        Returning(lambda codes: torch.empty(2**60)),
        Locked(lambda codes: codes),
        nn.ModuleList(),
    ],
    ids=lambda module: type(module).__name__,
)
def test_a_module_that_cannot_be_tried_is_loaded(module):
    assert rx.load_encoder(module).module is module


@pytest.mark.parametrize("source", [nn.Flatten(), "efficientnet_lite0", "torchvision:resnet18", "onnx:any.onnx"])
@pytest.mark.parametrize("device", ["mps", "mps:0"])
def test_a_device_without_float64_is_refused_with_the_reason(source, device):
    with pytest.raises(rx.errors.ConfigurationError, match=f"device '{device}'.*float64") as caught:
        rx.load_encoder(source, device=device)
    assert "\n" not in str(caught.value)


def test_a_module_on_a_device_that_is_not_supported_is_refused():
    with pytest.raises(rx.errors.ConfigurationError, match=r"device 'meta'.*move Linear to cpu"):
        rx.load_encoder(nn.Linear(2, 2, device="meta"))
