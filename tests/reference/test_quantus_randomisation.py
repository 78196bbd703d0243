"""MPRT against Quantus 0.6.0, with an explanation that draws nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics import mprt

quantus = pytest.importorskip("quantus")
pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = {"disable_warnings": True, "display_progressbar": False}


def gradients(module, pixels):
    """|∂‖f(x)‖²/∂x|, summed over channels."""
    pixels = pixels.detach().clone().requires_grad_()
    module(pixels).square().sum().backward()
    return pixels.grad.abs().sum(1)


@pytest.fixture
def method(encoder, image):
    found = rx.Relax(masks=2)(encoder, image, seed=0)
    return lambda encoder, image, *, seed: replace(
        found, importance=gradients(encoder.module, image.pixels[None].double())[0]
    )


@pytest.fixture
def images(encoder):
    drawn = torch.Generator().manual_seed(0)
    return [rx.load_image(torch.randn(3, 24, 20, generator=drawn), encoder) for _ in range(3)]


def theirs(network, images, **options):
    def explain(model, inputs, targets, **_):
        return gradients(model, torch.as_tensor(inputs))[:, None].numpy()

    x = torch.stack([image.pixels for image in images]).double().numpy()
    metric = quantus.MPRT(abs=False, normalise=False, seed=42, **options, **QUIET)
    return metric(model=network, x_batch=x, y_batch=np.zeros(len(x), int), explain_func=explain, channel_first=True)


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_layer_by_layer(order, network, encoder, images, method):
    expected = theirs(network, images, layer_order=order)
    found = mprt(method, encoder, images, order=order, seed=0)
    assert list(expected) == ["original", *found.layers]
    np.testing.assert_allclose(found.spearman, [expected[layer] for layer in found.layers], atol=1e-12)


def test_its_average_holds_the_undisturbed_model_and_ours_does_not(network, encoder, images, method):
    average = theirs(network, images, return_average_correlation=True)
    found = mprt(method, encoder, images, seed=0).spearman
    np.testing.assert_allclose(average, (1 + found.sum(0)) / (len(found) + 1), atol=1e-12)
    assert (torch.tensor(average) > found.mean(0)).all()
