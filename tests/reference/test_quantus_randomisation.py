"""MPRT compared with Quantus 0.6.0, on an explanation that is deterministic."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics import METRICS, mprt

quantus = pytest.importorskip("quantus")
pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = {"disable_warnings": True, "display_progressbar": False}


def gradients(module, pixels):
    """Return |∂‖f(x)‖²/∂x|, summed over channels."""
    pixels = pixels.detach().clone().requires_grad_()
    module(pixels).square().sum().backward()
    return pixels.grad.abs().sum(1)


@pytest.fixture
def method(encoder, image):
    explanation = rx.Relax(masks=2)(encoder, image, seed=0)
    return lambda encoder, image, *, seed: replace(
        explanation, importance=gradients(encoder.module, image.pixels[None].double())[0]
    )


@pytest.fixture
def images(encoder):
    generator = torch.Generator().manual_seed(0)
    return [rx.load_image(torch.randn(3, 24, 20, generator=generator), encoder) for _ in range(3)]


def by_quantus(network, images, **options):
    def explain(model, inputs, targets, **_):
        return gradients(model, torch.as_tensor(inputs))[:, None].numpy()

    x = torch.stack([image.pixels for image in images]).double().numpy()
    metric = quantus.MPRT(abs=False, normalise=False, seed=42, **options, **QUIET)
    return metric(model=network, x_batch=x, y_batch=np.zeros(len(x), int), explain_func=explain, channel_first=True)


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_rank_correlations_by_layer_equal_those_of_quantus(order, network, encoder, images, method):
    expected = by_quantus(network, images, layer_order=order)
    ours = mprt(method, encoder, images, order=order, seed=0)
    assert list(expected) == ["original", *ours.layers]
    np.testing.assert_allclose(ours.spearman, [expected[layer] for layer in ours.layers], atol=1e-12)


def test_quantus_averages_over_the_trained_model_as_well_and_ours_does_not(network, encoder, images, method):
    average = by_quantus(network, images, return_average_correlation=True)
    ours = mprt(method, encoder, images, seed=0).spearman
    np.testing.assert_allclose(average, (1 + ours.sum(0)) / (len(ours) + 1), atol=1e-12)
    assert (torch.tensor(average) > ours.mean(0)).all()


def test_the_score_of_an_image_is_quantus_average_without_the_trained_model(network, encoder, images, method):
    averages = by_quantus(network, images, return_average_correlation=True)
    for image, average in zip(images, averages, strict=True):
        layers = len(mprt(method, encoder, [image], seed=0).layers)
        expected = (average * (layers + 1) - 1) / layers
        assert METRICS["mprt"].score(method, encoder, image, seed=0)["importance"] == pytest.approx(expected, abs=1e-12)
