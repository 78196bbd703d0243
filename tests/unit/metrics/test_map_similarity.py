"""Spearman's rank correlation and the structural similarity of maps, compared with scipy and scikit-image."""

import numpy as np
import pytest
import scipy.stats
import torch
from skimage.metrics import structural_similarity

import repeat_xai as rx
from repeat_xai.metrics import spearman, ssim

KINDS = {
    "normal": lambda generator, n: generator.normal(size=(n, 40, 30)),
    "ties": lambda generator, n: generator.normal(size=(n, 40, 30)).round(1),
    "two values": lambda generator, n: generator.random((n, 40, 30)).round(),
    "heavy": lambda generator, n: generator.random((n, 40, 30)) ** 9,
    "large": lambda generator, n: generator.random((n, 224, 224)).round(3),
}


def pair(kind, n=3):
    """Return maps of a kind, and others that are correlated with them."""
    generator = np.random.default_rng(0)
    a, b = (KINDS[kind](generator, n) for _ in range(2))
    return torch.from_numpy(a), torch.from_numpy(a + b)


@pytest.mark.parametrize("kind", KINDS)
def test_spearman_equals_scipy(kind):
    a, b = pair(kind)
    expected = [scipy.stats.spearmanr(x.ravel(), y.ravel()).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(spearman(a, b), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(spearman(a, -a), -1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_ssim_equals_scikit_image(kind):
    a, b = pair(kind)
    expected = []
    for x, y in zip(a.numpy(), b.numpy(), strict=True):
        x, y = ((values - values.min()) / np.ptp(values) for values in (x, y))
        options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1}
        expected.append(structural_similarity(x, y, **options))
    np.testing.assert_allclose(ssim(a, b), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("similarity", [spearman, ssim])
def test_scale_does_not_matter_and_constant_maps_are_undefined(similarity):
    a, b = pair("normal")
    assert similarity(a, 3 * a + 7).tolist() == pytest.approx([1] * 3)
    assert similarity(a, b * 1e-9 + 1).tolist() == pytest.approx(similarity(a, b).tolist(), abs=1e-5)
    b[1] = 4
    assert similarity(a, b).isnan().tolist() == [False, True, False]
    assert similarity(a.view(3, 1, 40, 30), a.view(3, 1, 40, 30)).shape == (3, 1)


def test_maps_of_different_or_small_sizes_are_refused():
    for call, message in (
        (lambda: spearman(torch.ones(3, 3), torch.ones(3, 4)), "cannot be compared"),
        (lambda: ssim(torch.ones(9, 30), torch.ones(9, 30)), "11×11 or more"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()
