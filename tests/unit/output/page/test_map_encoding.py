"""Maps are stored in sixteen bits of grey and come back within half a step."""

from base64 import b64decode
from io import BytesIO

import numpy as np
import PIL.Image
import pytest
import torch

from repeat_xai.output.page.map_encoding import MISSING_GREY, encoded


def grey(stored):
    with PIL.Image.open(BytesIO(b64decode(stored.png.removeprefix("data:image/png;base64,")))) as picture:
        assert picture.mode == "I;16"
        return np.asarray(picture).astype(np.float64)


def decoded(stored):
    levels = grey(stored)
    return np.where(levels == MISSING_GREY, np.nan, stored.offset + stored.scale * levels)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3e-7, 5e-7), (1e6, 1e6 + 4), (-250, 12)])
def test_values_come_back_within_half_a_step(low, high):
    values = torch.rand(30, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * (high - low) + low
    stored = encoded(values)
    assert np.abs(decoded(stored) - values.numpy()).max() <= stored.scale * 0.50001
    assert stored.scale <= (high - low) / 65534
    assert 10.0 ** -(stored.digits + 1) < stored.scale or stored.digits == 0


@pytest.mark.parametrize("repeats", [1, 3, 10, 200])
def test_shares_of_few_repeats_are_exact_and_small(repeats):
    votes = torch.randint(0, repeats + 1, (50, 50), generator=torch.Generator().manual_seed(1))
    votes[0, :2] = torch.tensor([0, repeats])
    votes[1, : repeats + 1] = torch.arange(50)[: repeats + 1].clamp(max=repeats)
    shares = votes.float() / repeats
    stored = encoded(shares)
    assert stored.scale == pytest.approx(1 / repeats, rel=1e-6)
    np.testing.assert_array_equal(grey(stored), votes.numpy())
    np.testing.assert_allclose(decoded(stored), shares.numpy(), atol=1e-7)


def test_verdicts_are_exact():
    verdict = torch.tensor([[-1.0, 0.0, 1.0], [1.0, 1.0, -1.0]])
    np.testing.assert_array_equal(decoded(encoded(verdict)), verdict.numpy())


def test_a_constant_and_an_all_nan_map_are_decoded_as_they_were():
    assert (decoded(encoded(torch.full((3, 4), 0.25))) == 0.25).all()
    assert np.isnan(decoded(encoded(torch.full((3, 4), torch.nan)))).all()


def test_nan_and_infinite_values_are_missing_and_do_not_change_the_others():
    values = torch.tensor([[0.1, torch.nan], [torch.inf, 0.3], [0.15, -torch.inf]])
    back = decoded(encoded(values))
    assert np.isnan(back[~np.isfinite(values.numpy())]).all()
    np.testing.assert_allclose(back[np.isfinite(back)], [0.1, 0.3, 0.15], atol=2e-6)
