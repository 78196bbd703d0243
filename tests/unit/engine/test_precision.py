"""Half precision where it does no harm, and a word where it would."""

import pytest
import torch
from scipy.stats import spearmanr
from skimage import data
from torch import nn

import repeat_xai as rx


class Faint(nn.Module):
    """Codes so alike that half precision can hardly tell them apart."""

    def __init__(self, offset):
        super().__init__()
        self.offset = offset
        self.body = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(27, 16))

    def forward(self, images):
        return self.offset + self.body(images)


def encoder_and_image(offset, precision):
    torch.manual_seed(0)
    encoder = rx.load_encoder(Faint(offset), precision=precision)
    return encoder, rx.load_image(torch.randn(3, 24, 24, generator=torch.Generator().manual_seed(1)), encoder)


def test_rounding_that_decides_votes_is_told():
    encoder, image = encoder_and_image(5.0, "bfloat16")
    with pytest.warns(UserWarning, match="bfloat16 is too coarse, rounding decides votes"):
        rx.Relax(masks=60)(encoder, image, seed=0)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize("chunk", [None, 1])
def test_rounding_that_does_not_is_not(precision, chunk):
    half, image = encoder_and_image(0.0, precision)
    full, _ = encoder_and_image(0.0, "auto")
    a, b = (rx.Relax(masks=200, chunk=chunk)(e, image, seed=0) for e in (half, full))
    assert (a.provenance["ran"]["precision"], b.provenance["ran"]["precision"]) == (precision, "float32")
    assert spearmanr(a.importance.flatten(), b.importance.flatten()).statistic > 0.99


def test_double_precision_of_a_float32_encoder():
    double, image = encoder_and_image(0.0, "float64")
    single, _ = encoder_and_image(0.0, "float32")
    a, b = (rx.Relax(masks=60)(e, image, seed=0) for e in (double, single))
    assert double.module.body[2].weight.dtype == torch.float32
    torch.testing.assert_close(a, b, atol=1e-6, rtol=0)
    assert not torch.equal(a, b)


def test_an_encoder_that_does_not_run_in_half_precision_says_so():
    class Stubborn(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, images):
            return images.mean((2, 3)) @ torch.eye(3)

    encoder = rx.load_encoder(Stubborn(), precision="bfloat16")
    with pytest.raises(rx.RepeatError, match="does not run in bfloat16; use float32"):
        rx.Relax(masks=5)(encoder, rx.load_image(data.chelsea(), encoder), seed=0)
