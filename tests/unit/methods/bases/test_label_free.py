"""What holds for every label-free method: cost, seeds, refusals, and that nothing is left behind."""

import gc
import math
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.spatial.distance
import torch
from small_methods import SMALL
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.methods.bases.lime import alike
from repeat_xai.methods.method_names import METHODS

GRADIENTS = [name for name, method in SMALL.items() if method.gradients]
each = pytest.mark.parametrize("name", SMALL)


def test_every_method_by_name_is_tried_here():
    assert SMALL.keys() | {"repeat", "relax"} == METHODS.keys()


@each
def test_a_seed_names_the_map_and_global_randomness_is_as_before(name, encoder, image):
    method = SMALL[name]
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first, again, other = (method(encoder, image, seed=seed) for seed in (0, 0, 1))
    assert torch.get_rng_state().equal(before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert first.equal(again)
    assert first.equal(other) != method.stochastic


@each
def test_it_costs_what_it_says(name, encoder, image):
    method = SMALL[name]
    with metering() as meter:
        method(encoder, image, seed=0)
    windows = 5 * 4 if name == "occlusion" else None
    assert meter.calls == (windows + 2 if windows else method.calls)


@each
def test_the_encoder_is_left_as_it_was(name, network, image):
    network = network.double().train()
    network[2].eval()
    encoder = rx.load_encoder(network)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    SMALL[name](encoder, image, seed=0)
    assert all(value.equal(before[key]) for key, value in network.state_dict().items())
    assert [part.training for part in network] == [True, True, False, True, True, True, True]
    assert all(weight.requires_grad and weight.grad is None for weight in network.parameters())
    assert not image.pixels.requires_grad
    assert not hooks(network)


def hooks(network):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(part, kind)) for part in network.modules() for kind in kinds)


class Failing(nn.Module):
    """Gives up after some calls."""

    def __init__(self, body, calls):
        super().__init__()
        self.body, self.left = body, calls

    def forward(self, images):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the cable came out\nsomewhere")
        return self.body(images)


@each
def test_it_is_so_after_a_failure_in_the_middle(name, network, image):
    network = network.double()
    encoder = rx.load_encoder(Failing(network, 3).train(), name="mine")  # two calls tell whether it is steady
    state = torch.get_rng_state()
    with pytest.raises(rx.RepeatError, match=r"^(\w+ of )?mine fails: the cable came out$"):
        SMALL[name](encoder, image, seed=0)
    assert encoder.module.training
    assert all(part.training for part in network.modules())
    assert all(weight.requires_grad and weight.grad is None for weight in network.parameters())
    assert torch.get_rng_state().equal(state)
    assert torch.is_grad_enabled()
    assert not hooks(network)


@pytest.mark.parametrize("name", ["saliency", "guided_backprop", "smoothgrad", "kernel_shap"])
def test_two_hundred_explanations_leave_nothing_behind(name, encoder, image):
    method = SMALL[name]

    def run(times):
        for seed in range(times):
            method(encoder, image, seed=seed)
        gc.collect()
        tensors = sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
        return tensors, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    tensors, megabytes = run(20)
    assert run(200) == (tensors, pytest.approx(megabytes, abs=8))
    assert not hooks(encoder.module)


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("setting", [torch.no_grad, torch.inference_mode])
def test_gradients_are_taken_wherever_they_are_off(name, setting, encoder, image):
    expected = SMALL[name](encoder, image, seed=0)
    with setting():
        found = SMALL[name](encoder, image, seed=0)
        assert not torch.is_grad_enabled()
    assert found.equal(expected)


@pytest.mark.parametrize("name", GRADIENTS)
def test_frozen_weights_and_inplace_relus_change_nothing(name, network, image):
    expected = SMALL[name](rx.load_encoder(network.double()), image, seed=0)
    network.requires_grad_(False)
    for part in network:
        if isinstance(part, nn.ReLU):
            part.inplace = True
    assert SMALL[name](rx.load_encoder(network), image, seed=0).equal(expected)


@each
def test_a_network_that_writes_into_its_input_is_given_a_copy(name, image):
    network = nn.Sequential(nn.ReLU(inplace=True), nn.AvgPool2d(4), nn.Flatten()).double()
    before = image.pixels.clone()
    expected = SMALL[name](rx.load_encoder(nn.Sequential(nn.ReLU(), *network[1:])), image, seed=0)
    assert SMALL[name](rx.load_encoder(network), image, seed=0).equal(expected)
    assert image.pixels.equal(before)


def test_threads_do_not_disturb_each_other(encoder, image):
    methods = [SMALL[name] for name in ("kernel_shap", "saliency", "guided_backprop", "smoothgrad")] * 3
    alone = [method(encoder, image, seed=0) for method in methods]
    state = torch.get_rng_state()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda method: method(encoder, image, seed=0), methods))
    assert all(a.equal(b) for a, b in zip(alone, together, strict=True))
    assert torch.get_rng_state().equal(state)


def test_lime_weighs_copies_by_the_parts_they_keep(encoder, image):
    """Whatever stands in for the others: cosine distance of 0s and 1s, by scipy."""
    kept = torch.tensor([[1, 0, 0, 1, 1]])
    distance = scipy.spatial.distance.cosine(kept[0].numpy(), np.ones(5))
    assert alike(None, None, kept).item() == pytest.approx(math.exp(-(distance**2) / (2 * 0.25**2)))
    assert alike(None, None, 0 * kept).item() == pytest.approx(math.exp(-1 / (2 * 0.25**2)))


def test_memory_does_not_grow_with_steps_or_samples():
    network = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    encoder = rx.load_encoder(network)
    image = rx.load_image(torch.randn(3, 224, 224), encoder)
    assert isinstance(encoder, TorchEncoder)
    sizes = Largest()
    with sizes:
        for method in (
            rx.IntegratedGradients(steps=100),
            rx.GradientShap(samples=100),
            rx.SmoothGrad(samples=100),
            rx.KernelShap(samples=100),
            rx.Lime(samples=100),
            rx.Occlusion(),
        ):
            method(encoder, image, seed=0)
    eight_copies_of_the_widest_layer = 8 * 32 * 224 * 224
    assert sizes.most <= eight_copies_of_the_widest_layer


class Largest(torch.overrides.TorchFunctionMode):
    """The most numbers that any one tensor made by torch has."""

    most = 0

    def __torch_function__(self, function, types, arguments=(), options=None):
        found = function(*arguments, **(options or {}))
        if isinstance(found, torch.Tensor):
            self.most = max(self.most, found.untyped_storage().nbytes() // found.element_size())
        return found
