"""Half precision does not change maps where it is fine enough, and brings a warning where it is not."""

import pytest
import torch
from scipy.stats import spearmanr
from skimage import data
from torch import nn

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError


class NearlyConstant(nn.Module):
    """An encoder whose codes differ so little that half precision can hardly tell them apart."""

    def __init__(self, offset):
        super().__init__()
        self.offset = offset
        self.body = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(27, 16))

    def forward(self, images):
        return self.offset + self.body(images)


def encoder_and_image(offset, precision):
    torch.manual_seed(0)
    encoder = rx.load_encoder(NearlyConstant(offset), precision=precision)
    return encoder, rx.load_image(torch.randn(3, 24, 24, generator=torch.Generator().manual_seed(1)), encoder)


def test_rounding_that_decides_votes_brings_a_warning():
    encoder, image = encoder_and_image(5.0, "bfloat16")
    with pytest.warns(UserWarning, match="bfloat16 may change votes"):
        rx.Relax(masks=60)(encoder, image, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize("chunk", [None, 1])
def test_half_precision_gives_nearly_the_same_map(precision, chunk):
    half, image = encoder_and_image(0.0, precision)
    full, _ = encoder_and_image(0.0, "auto")
    a, b = (rx.Relax(masks=200, chunk=chunk)(e, image, seed=0) for e in (half, full))
    assert (a.provenance["ran"]["precision"], b.provenance["ran"]["precision"]) == (precision, "float32")
    assert spearmanr(a.importance.flatten(), b.importance.flatten()).statistic > 0.99


def test_a_float32_encoder_can_be_run_in_double_precision():
    double, image = encoder_and_image(0.0, "float64")
    single, _ = encoder_and_image(0.0, "float32")
    a, b = (rx.Relax(masks=60).importance(e, image, seed=0) for e in (double, single))
    assert double.module.body[2].weight.dtype == torch.float32
    torch.testing.assert_close(a, b, atol=1e-6, rtol=0)
    assert not torch.equal(a, b)


def test_an_encoder_that_does_not_run_in_half_precision_is_refused():
    class OnlyFloat32(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, images):
            return images.mean((2, 3)) @ torch.eye(3)

    encoder = rx.load_encoder(OnlyFloat32(), precision="bfloat16")
    with pytest.raises(ConfigurationError, match="does not run in bfloat16"):
        rx.Relax(masks=5)(encoder, rx.load_image(data.chelsea(), encoder), seed=0)
