"""Every label-free method equals its closed form on encoders simple enough to be solved by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.methods.bases.label_free import COPIES_PER_BATCH

SIDE = 8


class Square(nn.Module):
    """The encoder f(x) = x², for which g(x̃) = Σ x²x̃² and ∂g/∂x̃ at y is 2x²y."""

    def forward(self, images):
        return images.flatten(1) ** 2


class LinearNetwork(nn.Module):
    """The encoder f(x) = Wx, for which g(x̃) = ⟨v, x̃⟩ with v = WᵀWx."""

    def __init__(self):
        super().__init__()
        matrix = torch.randn(5, 3 * SIDE * SIDE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.matrix = nn.Parameter(matrix)

    def forward(self, images):
        return images.flatten(1) @ self.matrix.T


@pytest.fixture
def linear():
    return rx.load_encoder(LinearNetwork())


@pytest.fixture
def square():
    return rx.load_encoder(nn.Sequential(nn.Identity(), Square()).double())


@pytest.fixture
def picture(linear):
    return rx.load_image(torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(1)), linear)


def gradient(linear, picture):
    """Return v, the gradient of g for the linear encoder."""
    x, w = picture.pixels.double(), linear.module.matrix.detach()
    return (w.T @ w @ x.flatten()).view_as(x)


def assert_close(importance, expected, tolerance=1e-6):
    """Compare maps, up to a share of the largest value."""
    assert importance.dtype == torch.float64
    assert (importance - expected).abs().max() <= tolerance * expected.abs().max()


def by_quarters(effect):
    """Return a map in which every pixel has the sum of the effects of its quarter of the image."""
    sums = effect.view(2, 4, 2, 4).sum((1, 3))
    return sums.repeat_interleave(4, 0).repeat_interleave(4, 1)


def test_saliency_is_the_gradient(linear, picture):
    assert_close(rx.Saliency().importance(linear, picture, seed=0), gradient(linear, picture).abs().sum(0))


def test_channels_are_reduced_by_the_named_rule(linear, picture):
    v = gradient(linear, picture)
    assert_close(rx.Saliency(channels="max_abs").importance(linear, picture, seed=0), v.abs().amax(0))
    assert_close(rx.Saliency(channels="mean").importance(linear, picture, seed=0), v.mean(0))


def test_input_times_gradient_is_the_product(linear, picture):
    expected = (picture.pixels.double() * gradient(linear, picture)).abs().sum(0)
    assert_close(rx.InputXGradient().importance(linear, picture, seed=0), expected)


@pytest.mark.parametrize("fill", ["mean", "black", "blur"])
def test_integrated_gradients_of_a_linear_encoder_are_the_difference_from_the_fill_times_the_gradient(
    linear, picture, fill
):
    x = picture.pixels.double()
    mean, std = (
        torch.tensor(v, dtype=torch.float64)[:, None, None]
        for v in (linear.preprocessing.mean, linear.preprocessing.std)
    )
    filled = {"mean": torch.zeros_like(x), "black": -mean / std + 0 * x, "blur": blurred(x)}[fill]
    importance = rx.IntegratedGradients(fill=fill, channels="mean").importance(linear, picture, seed=0)
    assert_close(importance, ((x - filled) * gradient(linear, picture)).mean(0))


def test_integrated_gradients_average_a_gradient_that_varies_along_the_path(square, picture):
    method = rx.IntegratedGradients(steps=2 * COPIES_PER_BATCH + 3)
    assert_close(method.importance(square, picture, seed=0), (picture.pixels.double() ** 4).sum(0))


def test_smoothgrad_is_the_mean_and_vargrad_the_variance_of_gradients_under_noise(square, picture):
    x = picture.pixels.double()
    deviation = 0.15 * (x.max() - x.min())
    mean = rx.SmoothGrad(samples=4000, channels="mean").importance(square, picture, seed=0)
    error = 2 * x**2 * deviation / math.sqrt(4000)
    assert ((mean - (2 * x**3).mean(0)).abs() <= 5 * error.square().sum(0).sqrt() / 3 + 1e-9).all()
    variance = rx.SmoothGrad(samples=4000, moment="variance").importance(square, picture, seed=0)
    assert_close(variance, (4 * x**4 * deviation**2).sum(0), tolerance=0.15)


def test_gradient_shap_averages_over_noise_and_path(square, picture):
    x = picture.pixels.double()
    deviation = 0.1 * (x.max() - x.min())
    importance = rx.GradientShap(samples=4000, channels="mean").importance(square, picture, seed=0)
    assert_close(importance, (x**2 * (x**2 + deviation**2)).mean(0), tolerance=0.05)


def test_gradient_shap_of_a_linear_encoder_without_noise_equals_integrated_gradients(linear, picture):
    importance = rx.GradientShap(samples=20, noise=1e-9, channels="mean").importance(linear, picture, seed=0)
    assert_close(importance, (picture.pixels.double() * gradient(linear, picture)).mean(0))


def test_occlusion_is_the_mean_effect_of_the_windows_over_a_pixel(linear, picture):
    effect = (picture.pixels.double() * gradient(linear, picture)).sum(0)
    importance = rx.Occlusion(window=4, stride=4).importance(linear, picture, seed=0)
    assert_close(importance, by_quarters(effect))
    overlapping = rx.Occlusion(window=4, stride=2).importance(linear, picture, seed=0)
    total, count = torch.zeros(SIDE, SIDE, dtype=torch.float64), torch.zeros(SIDE, SIDE)
    for top, left in itertools.product(range(0, SIDE - 3, 2), repeat=2):
        window = (slice(top, top + 4), slice(left, left + 4))
        total[window] += effect[window].sum()
        count[window] += 1
    assert_close(overlapping, total / count)


def test_occlusion_makes_the_calls_it_states_for_224_pixels():
    encoder = rx.load_encoder(nn.Sequential(nn.AvgPool2d(56), nn.Flatten()))
    image = rx.load_image(torch.randn(3, 224, 224), encoder)
    method = rx.Occlusion()
    explanation = rx.Spread(base=method, by=rx.Flips(), passes=2)(encoder, image, seed=0)
    assert explanation.provenance["encoder_calls"] == 2 * method.calls


def test_kernel_shap_of_a_linear_encoder_is_the_effect_of_each_part(linear, picture):
    effect = (picture.pixels.double() * gradient(linear, picture)).sum(0)
    importance = rx.KernelShap(features=rx.Squares(cells=2), samples=100).importance(linear, picture, seed=0)
    assert_close(importance, by_quarters(effect), tolerance=1e-4)


@pytest.mark.slow
def test_kernel_shap_converges_to_shapley_values_by_enumeration(encoder, image):
    """Nine parts have 2⁹ coalitions, each of which is encoded."""
    features = rx.Squares(cells=3)
    parts = features(image)
    exact = shapley_values(encoder, image, parts)
    errors = []
    for samples in (200, 20_000):
        importance = rx.KernelShap(features=features, samples=samples).importance(encoder, image, seed=0)
        values = torch.stack([importance[parts == part].mean() for part in range(9)])
        errors.append(((values - exact).norm() / exact.norm()).item())
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4


def shapley_values(encoder, image, parts):
    """Return the Shapley value of each part, as the sum over all coalitions without it."""
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


def test_lime_of_a_linear_encoder_is_the_effect_of_each_part(linear, picture):
    """The ridge shrinks it a little."""
    effect = (picture.pixels.double() * gradient(linear, picture)).sum(0)
    importance = rx.Lime(features=rx.Squares(cells=2), samples=3000).importance(linear, picture, seed=0)
    assert_close(importance, by_quarters(effect), tolerance=0.02)


@pytest.mark.parametrize("inplace", [False, True])
def test_guided_backpropagation_by_hand(picture, inplace):
    """For one hidden layer it is W₁ᵀ relu(W₂ᵀh · [z > 0])."""
    generator = torch.Generator().manual_seed(2)
    first = torch.randn(6, 3 * SIDE * SIDE, generator=generator, dtype=torch.float64)
    second = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    layers = nn.Linear(first.shape[1], 6, bias=False).double(), nn.Linear(6, 4, bias=False).double()
    for layer, weight in zip(layers, (first, second), strict=True):
        layer.weight.data = weight
    encoder = rx.load_encoder(nn.Sequential(nn.Flatten(), layers[0], nn.ReLU(inplace=inplace), layers[1]))
    x = picture.pixels.double().flatten()
    z = first @ x
    code = second @ z.relu()
    guided = first.T @ ((second.T @ code) * (z > 0)).relu()
    assert_close(rx.GuidedBackprop().importance(encoder, picture, seed=0), guided.view(3, SIDE, SIDE).abs().sum(0))


def test_guided_backpropagation_without_a_relu_equals_saliency_with_a_warning(linear, picture):
    with pytest.warns(UserWarning, match=r"LinearNetwork has no nn.ReLU"):
        importance = rx.GuidedBackprop().importance(linear, picture, seed=0)
    assert importance.equal(rx.Saliency().importance(linear, picture, seed=0))


def test_a_target_replaces_the_code_of_the_image_by_the_mean_code_of_the_target(linear, picture):
    others = tuple(rx.load_image(torch.randn(3, SIDE, SIDE), linear) for _ in range(3))
    w = linear.module.matrix.detach()

    def gradient_towards(image):
        return (w.T @ w @ image.pixels.double().flatten()).view(3, SIDE, SIDE)

    assert_close(
        rx.Saliency(target=others[0]).importance(linear, picture, seed=0), gradient_towards(others[0]).abs().sum(0)
    )
    mean = torch.stack([gradient_towards(other) for other in others]).mean(0)
    assert_close(rx.Saliency(target=others).importance(linear, picture, seed=0), mean.abs().sum(0))
    signed = rx.InputXGradient(target=others, channels="mean")
    assert_close(signed.importance(linear, picture, seed=0), (picture.pixels * mean).mean(0))


def test_squares_and_values_number_their_parts(picture):
    assert rx.Squares(cells=2)(picture).tolist() == np.kron([[0, 1], [2, 3]], np.ones((4, 4), int)).tolist()
    assert rx.Squares(cells=99)(picture).unique().numel() == SIDE * SIDE
    assert rx.Values()(picture).shape == picture.pixels.shape


def test_superpixels_do_not_cross_the_border_between_two_colours(linear):
    pixels = torch.zeros(3, 32, 32)
    pixels[:, :, 13:] = 2.0
    parts = rx.Superpixels(segments=8)(rx.load_image(pixels, linear))
    assert not set(parts[:, :13].unique().tolist()) & set(parts[:, 13:].unique().tolist())
    assert 4 <= parts.unique().numel() <= 16


def blurred(x):
    """Return the image blurred by a Gaussian of deviation 5/6, cut off after two pixels and mirrored at the edge."""
    taps = torch.exp(-(torch.arange(-2, 3, dtype=torch.float64) ** 2) / (2 * (5 / 6) ** 2))
    taps = taps / taps.sum()
    padded = nn.functional.pad(x[None], (2, 2, 2, 2), mode="reflect")[0]
    rows = sum(tap * padded[:, i : i + SIDE] for i, tap in enumerate(taps))
    return sum(tap * rows[:, :, i : i + SIDE] for i, tap in enumerate(taps))
