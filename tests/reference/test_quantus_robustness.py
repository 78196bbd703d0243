"""Robustness, deletion and insertion against Quantus 0.6.0, by the same noise and an explanation that draws nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import deletion, local_lipschitz, max_sensitivity
from repeat_xai.metrics.shaken import disturbed

quantus = pytest.importorskip("quantus")
pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = {"disable_warnings": True, "display_progressbar": False}
DRAWS = 6


def gradients(module, pixels):
    """∂ Σ f(x)³ / ∂x, summed over channels: signed, and another at every x."""
    pixels = pixels.detach().clone().requires_grad_()
    module(pixels).pow(3).sum().backward()
    return pixels.grad.sum(1)


@pytest.fixture
def method(encoder, image):
    found = rx.Relax(masks=2)(encoder, image, seed=0)
    return lambda encoder, image, *, seed: replace(
        found, importance=gradients(encoder.module, image.pixels[None].double())[0]
    )


def theirs(metric, network, image, noise, size, **options):
    """Quantus' score of the image, disturbed as ours."""
    given = iter(disturbed(image, noise=noise, size=size, draws=DRAWS, numbers="common", seed=0))

    def disturb(arr, indices, **_):
        return next(given).pixels.double().numpy().reshape(arr.shape)

    def explain(model, inputs, targets, **_):
        return gradients(model, torch.as_tensor(inputs))[:, None].numpy()

    made = metric(nr_samples=DRAWS, perturb_func=disturb, **options, **QUIET)
    x = image.pixels[None].double().numpy()
    (found,) = made(model=network, x_batch=x, y_batch=np.zeros(1, int), explain_func=explain, channel_first=True)
    return found


def test_local_lipschitz(network, encoder, image, method):
    found = local_lipschitz(method, encoder, image, draws=DRAWS, numbers="common", seed=0)
    expected = theirs(quantus.LocalLipschitzEstimate, network, image, "normal", 0.1)
    assert found == pytest.approx(expected, rel=1e-7)


def test_max_sensitivity(network, encoder, image, method):
    """Where Quantus is told to divide maps by their largest value, as its Lipschitz estimate does unasked."""
    found = max_sensitivity(method, encoder, image, draws=DRAWS, numbers="common", seed=0)
    asked = theirs(quantus.MaxSensitivity, network, image, "uniform", 0.2, normalise=True)
    unasked = theirs(quantus.MaxSensitivity, network, image, "uniform", 0.2)
    assert found == pytest.approx(asked, rel=1e-7)
    assert abs(found - unasked) > 1e-3


class Alike(nn.Module):
    """How alike an image's code stays, as the only class of a classifier."""

    def __init__(self, encoder, image):
        super().__init__()
        self.module = encoder.module
        self.code = encoder(image.pixels[None])

    def forward(self, pixels):
        return F.cosine_similarity(self.code, self.module(pixels.double()))[:, None]


def flipped(encoder, image, importance, steps, way):
    """Quantus' curve: as pixels of all channels go, or come."""
    x = image.pixels[None].numpy()
    whole = x.reshape(1, -1)

    def come(arr, indices, **_):
        changed = arr.copy()
        np.put_along_axis(changed, indices, np.take_along_axis(whole, indices, 1), 1)
        return changed

    how = {"perturb_baseline": 0.0} if way == "deletion" else {"perturb_func": come}
    metric = quantus.PixelFlipping(features_in_step=x.size // steps, **how, **QUIET)
    started = x if way == "deletion" else np.zeros_like(x)
    (curve,) = metric(
        model=Alike(encoder, image).eval(),
        x_batch=started,
        y_batch=np.zeros(1, int),
        a_batch=importance[None, None].numpy(),
        channel_first=True,
        softmax=False,
    )
    return np.array(curve)


@pytest.mark.parametrize("way", ["deletion", "insertion"])
@pytest.mark.parametrize("steps", [3, 6, 12, 15, 24, 48, 96])
def test_deletion_and_insertion(way, steps, encoder, image):
    """Quantus leaves out the curve's first point, where nothing has changed yet."""
    importance = torch.randn(24, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = deletion(encoder, image, importance, way=way, steps=steps)
    np.testing.assert_allclose(found.similarities[1:], flipped(encoder, image, importance, steps, way), atol=1e-6)
    started = image.pixels[None] if way == "deletion" else torch.zeros(1, 3, 24, 20)
    assert found.similarities[0].item() == pytest.approx(Alike(encoder, image)(started).item())


def test_tied_pixels_go_as_they_come_there_and_together_here(encoder, image):
    importance = torch.ones(24, 20)
    importance[:, 10:] = 2
    theirs = flipped(encoder, image, importance, 6, "deletion")
    found = deletion(encoder, image, importance, steps=6).similarities
    assert found[1:].tolist() == pytest.approx([theirs[2]] * 3 + [theirs[5]] * 3, abs=1e-6)
    assert abs(theirs[0] - theirs[2]) > 0.01
