"""Robustness, deletion and insertion compared with Quantus 0.6.0.

Both see the same disturbances, and the explanation is deterministic.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import deletion, insertion, local_lipschitz, max_sensitivity
from repeat_xai.metrics.robustness import disturb

quantus = pytest.importorskip("quantus")
pytestmark = pytest.mark.filterwarnings("ignore")
QUIET = {"disable_warnings": True, "display_progressbar": False}
DRAWS = 6


def gradients(module, pixels):
    """Return ∂ Σ f(x)³ / ∂x, summed over channels: a signed map that changes with x."""
    pixels = pixels.detach().clone().requires_grad_()
    module(pixels).pow(3).sum().backward()
    return pixels.grad.sum(1)


@pytest.fixture
def method(encoder, image):
    explanation = rx.Relax(masks=2)(encoder, image, seed=0)
    return lambda encoder, image, *, seed: replace(
        explanation, importance=gradients(encoder.module, image.pixels[None].double())[0]
    )


def by_quantus(metric, network, image, distribution, size, **options):
    """Return Quantus' score of the image under our disturbances."""
    copies = iter(disturb(image, distribution=distribution, size=size, draws=DRAWS, numbers="common", seed=0))

    def next_copy(arr, indices, **_):
        return next(copies).pixels.double().numpy().reshape(arr.shape)

    def explain(model, inputs, targets, **_):
        return gradients(model, torch.as_tensor(inputs))[:, None].numpy()

    score = metric(nr_samples=DRAWS, perturb_func=next_copy, **options, **QUIET)
    x = image.pixels[None].double().numpy()
    (value,) = score(model=network, x_batch=x, y_batch=np.zeros(1, int), explain_func=explain, channel_first=True)
    return value


def test_local_lipschitz(network, encoder, image, method):
    value = local_lipschitz(method, encoder, image, draws=DRAWS, numbers="common", seed=0)
    expected = by_quantus(quantus.LocalLipschitzEstimate, network, image, "normal", 0.1)
    assert value == pytest.approx(expected, rel=1e-7)


def test_max_sensitivity(network, encoder, image, method):
    """They agree where Quantus divides maps by their largest value, which its Lipschitz estimate does by default."""
    value = max_sensitivity(method, encoder, image, draws=DRAWS, numbers="common", seed=0)
    normalised = by_quantus(quantus.MaxSensitivity, network, image, "uniform", 0.2, normalise=True)
    unnormalised = by_quantus(quantus.MaxSensitivity, network, image, "uniform", 0.2)
    assert value == pytest.approx(normalised, rel=1e-7)
    assert abs(value - unnormalised) > 1e-3


class CodeSimilarity(nn.Module):
    """A classifier with a single class, whose score is how similar the code is to that of an image."""

    def __init__(self, encoder, image):
        super().__init__()
        self.module = encoder.module
        self.code = encoder(image.pixels[None])

    def forward(self, pixels):
        return F.cosine_similarity(self.code, self.module(pixels.double()))[:, None]


def flipped(encoder, image, importance, steps, function):
    """Return Quantus' curve of deletion or insertion, in which a pixel changes in all channels at once."""
    x = image.pixels[None].numpy()
    whole = x.reshape(1, -1)

    def insert(arr, indices, **_):
        changed = arr.copy()
        np.put_along_axis(changed, indices, np.take_along_axis(whole, indices, 1), 1)
        return changed

    options = {"perturb_baseline": 0.0} if function is deletion else {"perturb_func": insert}
    metric = quantus.PixelFlipping(features_in_step=x.size // steps, **options, **QUIET)
    started = x if function is deletion else np.zeros_like(x)
    (curve,) = metric(
        model=CodeSimilarity(encoder, image).eval(),
        x_batch=started,
        y_batch=np.zeros(1, int),
        a_batch=importance[None, None].numpy(),
        channel_first=True,
        softmax=False,
    )
    return np.array(curve)


@pytest.mark.parametrize("function", [deletion, insertion])
@pytest.mark.parametrize("steps", [3, 6, 12, 15, 24, 48, 96])
def test_deletion_and_insertion(function, steps, encoder, image):
    """Quantus leaves out the curve's first point, where nothing has changed yet."""
    importance = torch.randn(24, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curve = function(encoder, image, importance, steps=steps)
    np.testing.assert_allclose(curve.similarities[1:], flipped(encoder, image, importance, steps, function), atol=1e-6)
    started = image.pixels[None] if function is deletion else torch.zeros(1, 3, 24, 20)
    assert curve.similarities[0].item() == pytest.approx(CodeSimilarity(encoder, image)(started).item())


def test_quantus_replaces_tied_pixels_in_order_and_ours_together(encoder, image):
    importance = torch.ones(24, 20)
    importance[:, 10:] = 2
    theirs = flipped(encoder, image, importance, 6, deletion)
    ours = deletion(encoder, image, importance, steps=6).similarities
    assert ours[1:].tolist() == pytest.approx([theirs[2]] * 3 + [theirs[5]] * 3, abs=1e-6)
    assert abs(theirs[0] - theirs[2]) > 0.01
