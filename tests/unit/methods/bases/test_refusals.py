"""Label-free methods refuse what they cannot explain, and a method may be made of any function."""

from dataclasses import replace

import captum.attr
import pytest
import torch
from small_methods import SMALL
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.torch_encoder import IMAGENET
from repeat_xai.errors import ConfigurationError, EncoderError

every_method = pytest.mark.parametrize("name", SMALL)


class OwnEncoder:
    """An encoder that is no torch module."""

    name, weights, pool = "own", "its own", "none"
    preprocessing = IMAGENET
    device, dtype = torch.device("cpu"), torch.float32

    def __call__(self, images):
        return images.flatten(2).mean(2)


@every_method
def test_an_encoder_without_gradients_serves_methods_that_need_none(name, image):
    method = SMALL[name]
    if method.gradients:
        with pytest.raises(EncoderError, match=rf"^own gives no gradients, which {type(method).__name__} needs"):
            method(OwnEncoder(), image, seed=0)
    else:
        assert method(OwnEncoder(), image, seed=0).importance.isfinite().all()


class Detached(nn.Module):
    def forward(self, images):
        return images.detach().flatten(1)


REFUSED = {
    "no gradient": (Detached(), "passes no gradient on"),
    "half precision": (nn.Sequential(nn.Flatten(), nn.Linear(3 * 24 * 20, 2)).half(), "float16.*float32"),
    "no code per image": (nn.Identity(), "choose a pool"),
    "no tensor": (type("Pair", (nn.Module,), {"forward": lambda self, x: (x, x)})(), "returns tuple"),
    "NaN": (type("Nan", (nn.Module,), {"forward": lambda self, x: x.flatten(1) * torch.nan})(), "NaN or infinite"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_encoder_that_cannot_be_used_is_refused_in_one_line(case, image):
    module, message = REFUSED[case]
    with pytest.raises(EncoderError, match=message) as refusal:
        rx.Saliency()(rx.load_encoder(module), image, seed=0)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", [rx.KernelShap, rx.Lime])
@pytest.mark.parametrize(
    ("features", "message"),
    [
        (torch.zeros(7, 7, dtype=torch.long), r"int64 \[7, 7\], not .* \[24, 20\] pixels"),
        (torch.rand(24, 20), r"float32 \[24, 20\]"),
        (torch.zeros(24, 20, dtype=torch.long), "a single part"),
        (lambda image: None, "NoneType"),
    ],
)
def test_features_that_do_not_fit_are_refused(kind, features, message, encoder, image):
    with pytest.raises(ConfigurationError, match=message):
        kind(features=features)(encoder, image, seed=0)


def test_features_may_be_numbered_with_gaps_and_differ_between_channels(encoder, image):
    def importance(features):
        return rx.KernelShap(samples=20, features=features).importance(encoder, image, seed=0)

    parts = rx.Squares(cells=2)(image)
    assert importance(parts * 7 + 3).equal(importance(parts))
    assert not importance(torch.stack((parts, parts + 4, parts + 8))).equal(importance(parts))


@pytest.mark.parametrize("method", [rx.Saliency(), rx.GuidedBackprop(), rx.InputXGradient()])
def test_codes_of_constant_length_bring_a_warning_where_the_gradient_vanishes(method, network, image):
    class Unit(nn.Module):
        def forward(self, codes):
            return nn.functional.normalize(codes)

    encoder = rx.load_encoder(nn.Sequential(*network, Unit()).double())
    with pytest.warns(UserWarning, match="codes of constant length"):
        method(encoder, image, seed=0)
    rx.IntegratedGradients()(encoder, image, seed=0)
    other = rx.load_image(torch.rand(3, 24, 20), encoder)
    replace(method, target=other)(encoder, image, seed=0)


@every_method
def test_a_precision_or_runtime_that_would_have_no_effect_is_refused(name, network, image):
    for options in ({"precision": "bfloat16"}, {"runtime": "compiled"}):
        with pytest.raises(ConfigurationError, match="leave both at auto"):
            SMALL[name](rx.load_encoder(network.float(), **options), image, seed=0)


@every_method
def test_a_code_of_zeros_is_refused(name, image):
    zero = type("Zero", (nn.Module,), {"forward": lambda self, x: 0 * x.flatten(1)})()
    encoder = rx.load_encoder(nn.Sequential(nn.ReLU(), zero), name="nothing")
    with pytest.raises(EncoderError, match="nothing gives a code of zeros"):
        SMALL[name](encoder, image, seed=0)


def test_targets_of_another_size_are_refused(image):
    encoder = rx.load_encoder(nn.Flatten().double())
    other = rx.load_image(torch.randn(3, 16, 16), encoder)
    with pytest.raises(ConfigurationError, match=r"768 values, the image 1440"):
        rx.Saliency(target=other)(encoder, image, seed=0)
    with pytest.raises(ConfigurationError, match="codes of different lengths"):
        rx.Saliency(target=(other, image))(encoder, image, seed=0)


def test_the_inner_product_of_half_precision_codes_does_not_overflow(image):
    """Codes of 1,440 values of 100 have a product of 14 million, more than float16 can hold."""

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(100.0).half())

        def forward(self, images):
            return (images.flatten(1) * 0 + 1) * self.scale

    assert rx.KernelShap(samples=20)(rx.load_encoder(Half()), image, seed=0).importance.isfinite().all()


def test_a_window_larger_than_the_image_is_refused(encoder, image):
    with pytest.raises(ConfigurationError, match="larger than the image, 20×24"):
        rx.Occlusion()(encoder, image, seed=0)


def test_any_other_attribution_of_captum_can_be_used(encoder, image):
    """The attributions of DeepLift sum to g(x) − g(0)."""
    deep_lift = rx.Attribution(
        name="DeepLift", function=lambda g, x: captum.attr.DeepLift(g).attribute(x), channels="mean"
    )
    total = deep_lift.importance(encoder, image, seed=0).sum() * 3
    code, code_of_zero = encoder(torch.stack((image.pixels.double(), torch.zeros(3, 24, 20, dtype=torch.float64))))
    assert total.item() == pytest.approx((code @ code - code @ code_of_zero).item(), rel=1e-6)
    spread = rx.Spread(base=deep_lift, passes=2)(encoder, image, seed=0)
    assert spread.provenance["method"]["base"]["name"] == "DeepLift"


def test_any_function_of_the_scalar_and_the_image_can_be_used(encoder, image):
    noisy = rx.Attribution(
        name="noise", function=lambda g, x: g(x) * torch.randn_like(x), stochastic=True, gradients=False
    )
    first, again = (noisy.importance(encoder, image, seed=3) for _ in range(2))
    assert first.equal(again)
    with pytest.raises(ConfigurationError, match=r"gave \[1\], not .* \[1, 3, 24, 20\]"):
        rx.Attribution(name="flat", function=lambda g, x: g(x))(encoder, image, seed=0)
