"""What label-free methods refuse, or warn of, and methods of one's own."""

from dataclasses import replace

import captum.attr
import pytest
import torch
from small_methods import SMALL
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.torch_encoder import IMAGENET

each = pytest.mark.parametrize("name", SMALL)


class Foreign:
    """An encoder that is no torch module."""

    name, weights, pool = "foreign", "its own", "none"
    preprocessing = IMAGENET
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
    zero = type("Zero", (nn.Module,), {"forward": lambda self, x: 0 * x.flatten(1)})()
    encoder = rx.load_encoder(nn.Sequential(nn.ReLU(), zero), name="nothing")
    with pytest.raises(rx.RepeatError, match="nothing gives a code of zeros"):
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
