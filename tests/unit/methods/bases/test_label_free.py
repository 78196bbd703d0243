"""Every label-free method makes the calls it states, depends on its seed alone, and leaves no trace."""

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
from repeat_xai.errors import EncoderError
from repeat_xai.methods.bases.lime import similarity_kernel
from repeat_xai.methods.method_names import METHODS

GRADIENTS = [name for name, method in SMALL.items() if method.gradients]
every_method = pytest.mark.parametrize("name", SMALL)


def test_every_method_of_the_registry_is_tested_here():
    assert SMALL.keys() | {"repeat", "relax"} == METHODS.keys()


@every_method
def test_the_seed_determines_the_map_and_global_generators_are_put_back(name, encoder, image):
    method = SMALL[name]
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first, again, other = (method.importance(encoder, image, seed=seed) for seed in (0, 0, 1))
    assert torch.get_rng_state().equal(before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert first.equal(again)
    assert first.equal(other) != method.stochastic


@every_method
def test_it_makes_the_calls_it_states(name, encoder, image):
    method = SMALL[name]
    with metering() as meter:
        provenance = method(encoder, image, seed=0).provenance
    windows = 5 * 4  # of occlusion, which states its calls for 224×224 pixels
    assert meter.calls == (windows + 2 if name == "occlusion" else method.calls)
    assert provenance["encoder_calls"] == meter.calls


@every_method
def test_the_encoder_is_left_unchanged(name, network, image):
    network = network.double().train()
    network[2].eval()
    encoder = rx.load_encoder(network)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    SMALL[name](encoder, image, seed=0)
    assert all(value.equal(before[key]) for key, value in network.state_dict().items())
    assert [part.training for part in network] == [True, True, False, True, True, True, True]
    assert all(weight.requires_grad and weight.grad is None for weight in network.parameters())
    assert not image.pixels.requires_grad
    assert not hook_count(network)


def hook_count(network):
    """Return how many hooks hang on a network."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(part, kind)) for part in network.modules() for kind in kinds)


class Failing(nn.Module):
    """Fails after some calls."""

    def __init__(self, body, calls):
        super().__init__()
        self.body, self.left = body, calls

    def forward(self, images):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the cable came out\nsomewhere")
        return self.body(images)


@every_method
def test_encoder_and_generators_are_left_unchanged_by_a_failure(name, network, image):
    network = network.double()
    encoder = rx.load_encoder(Failing(network, 3).train(), name="mine")  # two calls are the check that it is steady
    state = torch.get_rng_state()
    with pytest.raises(EncoderError, match=r"mine fails: the cable came out$"):
        SMALL[name](encoder, image, seed=0)
    assert encoder.module.training
    assert all(part.training for part in network.modules())
    assert all(weight.requires_grad and weight.grad is None for weight in network.parameters())
    assert torch.get_rng_state().equal(state)
    assert torch.is_grad_enabled()
    assert not hook_count(network)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["saliency", "guided_backprop", "smoothgrad", "kernel_shap"])
def test_two_hundred_explanations_leave_no_tensor_and_no_hook(name, encoder, image):
    method = SMALL[name]

    def run(times):
        for seed in range(times):
            method(encoder, image, seed=seed)
        gc.collect()
        tensors = sum(issubclass(type(item), torch.Tensor) for item in gc.get_objects())
        return tensors, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    tensors, megabytes = run(20)
    assert run(200) == (tensors, pytest.approx(megabytes, abs=8))
    assert not hook_count(encoder.module)


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("setting", [torch.no_grad, torch.inference_mode])
def test_gradients_are_computed_where_they_are_switched_off(name, setting, encoder, image):
    expected = SMALL[name].importance(encoder, image, seed=0)
    with setting():
        importance = SMALL[name].importance(encoder, image, seed=0)
        assert not torch.is_grad_enabled()
    assert importance.equal(expected)


@pytest.mark.parametrize("name", GRADIENTS)
def test_frozen_weights_and_inplace_relus_change_nothing(name, network, image):
    expected = SMALL[name].importance(rx.load_encoder(network.double()), image, seed=0)
    network.requires_grad_(False)
    for part in network:
        if isinstance(part, nn.ReLU):
            part.inplace = True
    assert SMALL[name].importance(rx.load_encoder(network), image, seed=0).equal(expected)


@every_method
def test_a_network_that_writes_into_its_input_is_given_a_copy(name, image):
    network = nn.Sequential(nn.ReLU(inplace=True), nn.AvgPool2d(4), nn.Flatten()).double()
    before = image.pixels.clone()
    not_in_place = rx.load_encoder(nn.Sequential(nn.ReLU(), *network[1:]))
    expected = SMALL[name].importance(not_in_place, image, seed=0)
    assert SMALL[name].importance(rx.load_encoder(network), image, seed=0).equal(expected)
    assert image.pixels.equal(before)


def test_threads_do_not_disturb_each_other(encoder, image):
    methods = [SMALL[name] for name in ("kernel_shap", "saliency", "guided_backprop", "smoothgrad")] * 3
    alone = [method.importance(encoder, image, seed=0) for method in methods]
    state = torch.get_rng_state()
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda method: method.importance(encoder, image, seed=0), methods))
    assert all(a.equal(b) for a, b in zip(alone, together, strict=True))
    assert torch.get_rng_state().equal(state)


def test_lime_weighs_copies_by_the_cosine_distance_of_the_parts_they_keep():
    kept = torch.tensor([[1, 0, 0, 1, 1]])
    distance = scipy.spatial.distance.cosine(kept[0].numpy(), np.ones(5))
    assert similarity_kernel(None, None, kept).item() == pytest.approx(math.exp(-(distance**2) / (2 * 0.25**2)))
    assert similarity_kernel(None, None, 0 * kept).item() == pytest.approx(math.exp(-1 / (2 * 0.25**2)))


@pytest.mark.slow
def test_memory_does_not_grow_with_steps_or_samples():
    network = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    encoder = rx.load_encoder(network)
    image = rx.load_image(torch.randn(3, 112, 112), encoder)
    assert isinstance(encoder, TorchEncoder)
    sizes = LargestTensor()
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
    eight_copies_of_the_widest_layer = 8 * 32 * 112 * 112
    assert sizes.numbers <= eight_copies_of_the_widest_layer


class LargestTensor(torch.overrides.TorchFunctionMode):
    """Remembers how many numbers the largest tensor holds that torch makes in the block."""

    numbers = 0

    def __torch_function__(self, function, types, arguments=(), options=None):
        result = function(*arguments, **(options or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.untyped_storage().nbytes() // result.element_size())
        return result
