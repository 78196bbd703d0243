"""Every label-free method on encoders simple enough to solve by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.methods.bases.label_free import AT_ONCE

SIDE = 8


class Square(nn.Module):
    """f(x) = x², so that g(x̃) = Σ x²x̃² and ∂g/∂x̃ at y is 2x²y."""

    def forward(self, images):
        return images.flatten(1) ** 2


class Weighted(nn.Module):
    """f(x) = Wx, so that g(x̃) = ⟨v, x̃⟩ with v = WᵀWx."""

    def __init__(self):
        super().__init__()
        drawn = torch.randn(5, 3 * SIDE * SIDE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.matrix = nn.Parameter(drawn)

    def forward(self, images):
        return images.flatten(1) @ self.matrix.T


@pytest.fixture
def linear():
    return rx.load_encoder(Weighted())


@pytest.fixture
def square():
    return rx.load_encoder(nn.Sequential(nn.Identity(), Square()).double())


@pytest.fixture
def picture(linear):
    return rx.load_image(torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(1)), linear)


def slope(linear, picture):
    x, w = picture.pixels.double(), linear.module.matrix.detach()
    return (w.T @ w @ x.flatten()).view_as(x)


def near(found, expected, tolerance=1e-6):
    assert found.dtype == torch.float64
    assert (found - expected).abs().max() <= tolerance * expected.abs().max()


def test_saliency_is_the_gradient(linear, picture):
    near(rx.Saliency()(linear, picture, seed=0), slope(linear, picture).abs().sum(0))


def test_channels_are_reduced_by_the_rule_named(linear, picture):
    v = slope(linear, picture)
    near(rx.Saliency(channels="max_abs")(linear, picture, seed=0), v.abs().amax(0))
    near(rx.Saliency(channels="mean")(linear, picture, seed=0), v.mean(0))


def test_input_times_gradient(linear, picture):
    near(
        rx.InputXGradient()(linear, picture, seed=0),
        (picture.pixels.double() * slope(linear, picture)).abs().sum(0),
    )


@pytest.mark.parametrize("baseline", ["zero", "black", "blur"])
def test_integrated_gradients_of_a_linear_encoder(linear, picture, baseline):
    x = picture.pixels.double()
    mean, std = (torch.tensor(v, dtype=torch.float64)[:, None, None] for v in _statistics(linear))
    stands_in = {"zero": torch.zeros_like(x), "black": -mean / std + 0 * x, "blur": _blurred(x)}[baseline]
    found = rx.IntegratedGradients(baseline=baseline, channels="mean")(linear, picture, seed=0)
    near(found, ((x - stands_in) * slope(linear, picture)).mean(0))


def test_integrated_gradients_follow_a_bent_path(square, picture):
    near(rx.IntegratedGradients(steps=2 * AT_ONCE + 3)(square, picture, seed=0), (picture.pixels.double() ** 4).sum(0))


def test_smoothgrad_is_the_mean_and_vargrad_the_variance_of_gradients_under_noise(square, picture):
    x = picture.pixels.double()
    deviation = 0.15 * (x.max() - x.min())
    mean = rx.SmoothGrad(samples=4000, channels="mean")(square, picture, seed=0)
    error = 2 * x**2 * deviation / math.sqrt(4000)
    assert ((mean - (2 * x**3).mean(0)).abs() <= 5 * error.square().sum(0).sqrt() / 3 + 1e-9).all()
    spread = rx.SmoothGrad(samples=4000, moment="variance")(square, picture, seed=0)
    near(spread, (4 * x**4 * deviation**2).sum(0), tolerance=0.15)


def test_gradient_shap_averages_over_the_way(square, picture):
    x = picture.pixels.double()
    deviation = 0.1 * (x.max() - x.min())
    found = rx.GradientShap(samples=4000, channels="mean")(square, picture, seed=0)
    near(found, (x**2 * (x**2 + deviation**2)).mean(0), tolerance=0.05)


def test_gradient_shap_of_a_linear_encoder_differs_from_integrated_gradients_by_its_noise_alone(linear, picture):
    found = rx.GradientShap(samples=20, noise=1e-9, channels="mean")(linear, picture, seed=0)
    near(found, (picture.pixels.double() * slope(linear, picture)).mean(0))


def test_occlusion_is_what_the_windows_take_away(linear, picture):
    effect = (picture.pixels.double() * slope(linear, picture)).sum(0)
    found = rx.Occlusion(window=4, stride=4)(linear, picture, seed=0)
    blocks = effect.view(2, 4, 2, 4).sum((1, 3))
    near(found, blocks.repeat_interleave(4, 0).repeat_interleave(4, 1))
    overlapping = rx.Occlusion(window=4, stride=2)(linear, picture, seed=0)
    total, count = torch.zeros(SIDE, SIDE, dtype=torch.float64), torch.zeros(SIDE, SIDE)
    for top, left in itertools.product(range(0, SIDE - 3, 2), repeat=2):
        there = (slice(top, top + 4), slice(left, left + 4))
        total[there] += effect[there].sum()
        count[there] += 1
    near(overlapping, total / count)


def test_occlusion_costs_what_it_says_at_224():
    encoder = rx.load_encoder(nn.Sequential(nn.AvgPool2d(56), nn.Flatten()))
    image = rx.load_image(torch.randn(3, 224, 224), encoder)
    method = rx.Occlusion()
    found = rx.Spread(base=method, by=rx.Flips(), passes=2)(encoder, image, seed=0)
    assert found.provenance["encoder_calls"] == 2 * method.calls


def test_kernel_shap_of_a_linear_encoder_is_each_parts_share(linear, picture):
    effect = (picture.pixels.double() * slope(linear, picture)).sum(0)
    found = rx.KernelShap(features=rx.Squares(cells=2), samples=100)(linear, picture, seed=0)
    parts = effect.view(2, 4, 2, 4).sum((1, 3))
    near(found, parts.repeat_interleave(4, 0).repeat_interleave(4, 1), tolerance=1e-4)


def test_kernel_shap_converges_to_shapley_values_by_enumeration(encoder, image):
    """Nine parts: 2⁹ coalitions, each through the encoder, and the sum over all orders written out."""
    features = rx.Squares(cells=3)
    parts = features(image)
    exact = shapley(encoder, image, parts)
    errors = []
    for samples in (200, 20_000):
        found = rx.KernelShap(features=features, samples=samples)(encoder, image, seed=0)
        values = torch.stack([found[parts == part].mean() for part in range(9)])
        errors.append(((values - exact).norm() / exact.norm()).item())
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4


def shapley(encoder, image, parts):
    count = int(parts.max()) + 1
    coalitions = list(itertools.product((0.0, 1.0), repeat=count))
    kept = torch.tensor(coalitions, dtype=torch.float64)[:, parts]
    copies = image.pixels.double() * kept[:, None]
    code = encoder(image.pixels.double()[None])[0]
    worth = dict(zip(coalitions, (encoder(copies) @ code).tolist(), strict=True))
    values = []
    for part in range(count):
        value = 0.0
        for coalition in coalitions:
            if coalition[part]:
                continue
            size = int(sum(coalition))
            weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
            joined = tuple(1.0 if i == part else kept for i, kept in enumerate(coalition))
            value += weight * (worth[joined] - worth[coalition])
        values.append(value)
    return torch.tensor(values, dtype=torch.float64)


def test_lime_of_a_linear_encoder_is_each_parts_share(linear, picture):
    """But for the ridge, which shrinks it a little."""
    effect = (picture.pixels.double() * slope(linear, picture)).sum(0)
    found = rx.Lime(features=rx.Squares(cells=2), samples=3000)(linear, picture, seed=0)
    parts = effect.view(2, 4, 2, 4).sum((1, 3))
    near(found, parts.repeat_interleave(4, 0).repeat_interleave(4, 1), tolerance=0.02)


@pytest.mark.parametrize("inplace", [False, True])
def test_guided_backpropagation_by_hand(picture, inplace):
    """One hidden layer: W₁ᵀ relu(W₂ᵀh · [z > 0])."""
    drawn = torch.Generator().manual_seed(2)
    first = torch.randn(6, 3 * SIDE * SIDE, generator=drawn, dtype=torch.float64)
    second = torch.randn(4, 6, generator=drawn, dtype=torch.float64)
    layers = nn.Linear(first.shape[1], 6, bias=False).double(), nn.Linear(6, 4, bias=False).double()
    for layer, weight in zip(layers, (first, second), strict=True):
        layer.weight.data = weight
    encoder = rx.load_encoder(nn.Sequential(nn.Flatten(), layers[0], nn.ReLU(inplace=inplace), layers[1]))
    x = picture.pixels.double().flatten()
    z = first @ x
    code = second @ z.relu()
    guided = first.T @ ((second.T @ code) * (z > 0)).relu()
    near(rx.GuidedBackprop()(encoder, picture, seed=0), guided.view(3, SIDE, SIDE).abs().sum(0))


def test_guided_backpropagation_without_a_relu_is_saliency_and_says_so(linear, picture):
    with pytest.warns(UserWarning, match=r"Weighted has no nn.ReLU: its guided backpropagation is saliency"):
        found = rx.GuidedBackprop()(linear, picture, seed=0)
    assert found.equal(rx.Saliency()(linear, picture, seed=0))


def test_a_reference_asks_what_makes_two_images_alike(linear, picture):
    others = tuple(rx.load_image(torch.randn(3, SIDE, SIDE), linear) for _ in range(3))
    w = linear.module.matrix.detach()

    def towards(image):
        return (w.T @ w @ image.pixels.double().flatten()).view(3, SIDE, SIDE)

    near(rx.Saliency(reference=others[0])(linear, picture, seed=0), towards(others[0]).abs().sum(0))
    mean = torch.stack([towards(other) for other in others]).mean(0)
    near(rx.Saliency(reference=others)(linear, picture, seed=0), mean.abs().sum(0))
    near(rx.InputXGradient(reference=others, channels="mean")(linear, picture, seed=0), (picture.pixels * mean).mean(0))


def test_squares_and_values_number_their_parts(picture):
    assert rx.Squares(cells=2)(picture).tolist() == np.kron([[0, 1], [2, 3]], np.ones((4, 4), int)).tolist()
    assert rx.Squares(cells=99)(picture).unique().numel() == SIDE * SIDE
    assert rx.Values()(picture).shape == picture.pixels.shape


def test_superpixels_keep_to_colours(linear):
    pixels = torch.zeros(3, 32, 32)
    pixels[:, :, 13:] = 2.0
    parts = rx.Superpixels(segments=8)(rx.load_image(pixels, linear))
    assert not set(parts[:, :13].unique().tolist()) & set(parts[:, 13:].unique().tolist())
    assert 4 <= parts.unique().numel() <= 16


def _statistics(encoder):
    return encoder.preprocessing.mean, encoder.preprocessing.std


def _blurred(x):
    """A Gaussian of deviation 5/6 cut off after two pixels, mirrored at the edge, by hand."""
    taps = torch.exp(-(torch.arange(-2, 3, dtype=torch.float64) ** 2) / (2 * (5 / 6) ** 2))
    taps = taps / taps.sum()
    padded = nn.functional.pad(x[None], (2, 2, 2, 2), mode="reflect")[0]
    rows = sum(tap * padded[:, i : i + SIDE] for i, tap in enumerate(taps))
    return sum(tap * rows[:, :, i : i + SIDE] for i, tap in enumerate(taps))
