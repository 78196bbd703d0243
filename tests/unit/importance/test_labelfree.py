"""What holds for every label-free method: cost, seeds, refusals, and that nothing is left behind."""

import gc
import math
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import captum.attr
import numpy as np
import pytest
import scipy.spatial.distance
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.calls import metering
from repeat_xai.encoders import TorchEncoder
from repeat_xai.importance.lime import alike
from repeat_xai.methods import METHODS

SMALL = {
    "saliency": rx.Saliency(),
    "guided_backprop": rx.GuidedBackprop(),
    "integrated_gradients": rx.IntegratedGradients(steps=11),
    "input_x_gradient": rx.InputXGradient(),
    "gradient_shap": rx.GradientShap(samples=11),
    "smoothgrad": rx.SmoothGrad(samples=11),
    "vargrad": rx.SmoothGrad(samples=11, moment="variance"),
    "occlusion": rx.Occlusion(window=8, stride=4),
    "kernel_shap": rx.KernelShap(samples=30, features=rx.Squares(cells=3)),
    "lime": rx.Lime(samples=30, features=rx.Squares(cells=3)),
}
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
    encoder = rx.load_encoder(Failing(network, 1).train(), name="mine")
    state = torch.get_rng_state()
    with pytest.raises(rx.RepeatError, match=r"^\w+ of mine fails: the cable came out$"):
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


class Foreign:
    """An encoder that is no torch module."""

    name, weights, pool = "foreign", "its own", "none"
    preprocessing = rx.encoders.module.IMAGENET
    device, dtype = torch.device("cpu"), torch.float32

    def __call__(self, images):
        return images.flatten(2).mean(2)


@each
def test_an_encoder_without_gradients_serves_methods_without(name, image):
    method = SMALL[name]
    if method.gradients:
        with pytest.raises(rx.RepeatError, match=rf"^foreign gives no gradients, which {type(method).__name__} needs"):
            method(Foreign(), image, seed=0)
    else:
        assert method(Foreign(), image, seed=0).isfinite().all()


class Detached(nn.Module):
    def forward(self, images):
        return images.detach().flatten(1)


REFUSED = {
    "no gradient reaches the image": (Detached(), "Detached passes no gradient on to its images"),
    "half precision": (nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 20, 2)).half(), "float16.*load it in float32"),
    "no code an image": (nn.Identity(), r"not one code per image .*choose a pool"),
    "no tensor": (type("Pair", (nn.Module,), {"forward": lambda self, x: (x, x)})(), "returns tuple"),
    "NaN": (type("Nan", (nn.Module,), {"forward": lambda self, x: x.flatten(1) * torch.nan})(), "NaN or infinite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_said_in_one_line(case, image):
    module, message = REFUSED[case]
    with pytest.raises(rx.RepeatError, match=message) as refusal:
        rx.Saliency()(rx.load_encoder(module), image, seed=0)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", [rx.KernelShap, rx.Lime])
@pytest.mark.parametrize(
    ("features", "message"),
    [
        (torch.zeros(7, 7, dtype=torch.long), r"int64 \[7, 7\], not a whole number for each of \[24, 20\] pixels"),
        (torch.rand(24, 20), r"float32 \[24, 20\]"),
        (torch.zeros(24, 20, dtype=torch.long), "a single part"),
        (lambda image: None, "NoneType"),
    ],
)
def test_features_that_do_not_fit_are_refused(kind, features, message, encoder, image):
    with pytest.raises(rx.RepeatError, match=message):
        kind(features=features)(encoder, image, seed=0)


def test_features_may_be_numbered_with_gaps_and_by_channel(encoder, image):
    parts = rx.Squares(cells=2)(image)
    plain = rx.KernelShap(samples=20, features=parts)(encoder, image, seed=0)
    assert rx.KernelShap(samples=20, features=parts * 7 + 3)(encoder, image, seed=0).equal(plain)
    by_channel = torch.stack((parts, parts + 4, parts + 8))
    assert not rx.KernelShap(samples=20, features=by_channel)(encoder, image, seed=0).equal(plain)


@pytest.mark.parametrize("method", [rx.Saliency(), rx.GuidedBackprop(), rx.InputXGradient()])
def test_codes_of_constant_length_are_a_blind_spot_that_is_named(method, network, image):
    class Unit(nn.Module):
        def forward(self, codes):
            return nn.functional.normalize(codes)

    encoder = rx.load_encoder(nn.Sequential(*network, Unit()).double())
    with pytest.warns(UserWarning, match="codes of constant length, to which gradients at the image are blind"):
        method(encoder, image, seed=0)
    rx.IntegratedGradients()(encoder, image, seed=0)
    other = rx.load_image(torch.rand(3, 24, 20), encoder)
    replace(method, reference=other)(encoder, image, seed=0)


@each
def test_what_would_be_asked_in_vain_is_refused(name, network, image):
    for options in ({"precision": "bfloat16"}, {"runtime": "compiled"}):
        with pytest.raises(rx.RepeatError, match="is run by torch in float32, as the weights are; leave both at auto"):
            SMALL[name](rx.load_encoder(network.float(), **options), image, seed=0)


@each
def test_a_code_of_zeros_is_named(name, image):
    encoder = rx.load_encoder(type("Nothing", (nn.Module,), {"forward": lambda self, x: 0 * x.flatten(1)})())
    if name == "guided_backprop":
        pytest.skip("warns first that there is no ReLU")
    with pytest.raises(rx.RepeatError, match="Nothing gives a code of zeros"):
        SMALL[name](encoder, image, seed=0)


def test_references_of_another_size_are_refused(image):
    encoder = rx.load_encoder(nn.Flatten().double())
    other = rx.load_image(torch.randn(3, 16, 16), encoder)
    with pytest.raises(rx.RepeatError, match="the reference has a code of 768 values, the image 1440"):
        rx.Saliency(reference=other)(encoder, image, seed=0)
    with pytest.raises(rx.RepeatError, match="codes of different lengths"):
        rx.Saliency(reference=(other, image))(encoder, image, seed=0)


def test_a_half_precision_scalar_does_not_overflow(image):
    """Codes of 100 in 1,440 places: their product, 14 million, is past what float16 holds."""

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(100.0).half())

        def forward(self, images):
            return (images.flatten(1) * 0 + 1) * self.scale

    found = rx.KernelShap(samples=20)(rx.load_encoder(Half()), image, seed=0)
    assert found.isfinite().all()


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


def test_a_window_larger_than_the_image_is_refused(encoder, image):
    with pytest.raises(rx.RepeatError, match="a window of 32 is larger than the image, 20×24"):
        rx.Occlusion()(encoder, image, seed=0)


def test_any_other_attribution_of_captums_in_a_line(encoder, image):
    """DeepLift's shares add up to g(x) − g(0), as it promises."""
    deep_lift = rx.Attribution(
        name="DeepLift", function=lambda g, x: captum.attr.DeepLift(g).attribute(x), channels="mean"
    )
    total = deep_lift(encoder, image, seed=0).sum() * 3
    code, nothing = encoder(torch.stack((image.pixels.double(), torch.zeros(3, 24, 20, dtype=torch.float64))))
    assert total.item() == pytest.approx((code @ code - code @ nothing).item(), rel=1e-6)
    found = rx.Spread(base=deep_lift, passes=2)(encoder, image, seed=0)
    assert found.provenance["method"]["base"]["name"] == "DeepLift"


def test_any_function_of_the_scalar_and_the_pixels_too(encoder, image):
    noisy = rx.Attribution(
        name="noise", function=lambda g, x: g(x) * torch.randn_like(x), stochastic=True, gradients=False
    )
    assert noisy(encoder, image, seed=3).equal(noisy(encoder, image, seed=3))
    with pytest.raises(rx.RepeatError, match=r"gave \[1\], not a value for each of \[1, 3, 24, 20\]"):
        rx.Attribution(name="flat", function=lambda g, x: g(x))(encoder, image, seed=0)


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
