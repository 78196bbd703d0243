"""Masks depend on their number and seed alone, and sums over grids are turned into maps exactly."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.transform import resize

import repeat_xai as rx
from repeat_xai.engine import masks
from repeat_xai.engine.masks import Basis
from repeat_xai.errors import ConfigurationError

CPU = torch.device("cpu")


@settings(max_examples=30, deadline=None)
@given(
    height=st.integers(9, 40),
    width=st.integers(9, 40),
    cells=st.integers(2, 8),
    style=st.sampled_from(["relax", "rise"]),
    seed=st.integers(0, 2**64 - 1),
)
def test_sums_over_grids_equal_sums_over_masks(height, width, cells, style, seed):
    grid = rx.Grid(cells=cells, style=style)
    basis = Basis.of(grid, height, width, CPU)
    draws = basis.draw(seed=seed, start=0, stop=50)
    weights = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed % 2**63))
    drawn = basis.masks(draws, torch.float64)
    expected = torch.einsum("nk,nij->kij", weights, drawn)
    torch.testing.assert_close(basis.maps(basis.sums(draws, weights)), expected, atol=1e-12, rtol=1e-12)
    assert drawn.min() >= 0
    assert drawn.max() <= 1 + 1e-12


@pytest.mark.parametrize("style", ["relax", "rise"])
def test_a_mask_depends_on_its_number_and_seed_alone(style):
    grid = rx.Grid(style=style)
    basis = Basis.of(grid, 32, 32, CPU)
    whole = basis.draw(seed=4, start=0, stop=100)
    for start, stop in ((0, 1), (17, 18), (50, 100)):
        part = basis.draw(seed=4, start=start, stop=stop)
        assert torch.equal(part.grids, whole.grids[start:stop])
        assert torch.equal(part.shifts, whole.shifts[start:stop])
    assert not torch.equal(basis.draw(seed=5, start=0, stop=100).grids, whole.grids)


def test_cells_are_kept_with_the_given_probability_and_all_shifts_are_equally_likely():
    grid = rx.Grid(keep=0.3)
    basis = Basis.of(grid, 32, 32, CPU)
    draws = basis.draw(seed=0, start=0, stop=20_000)
    assert abs(draws.grids.mean().item() - 0.3) < 5 * (0.21 / (20_000 * 49)) ** 0.5
    counts = torch.bincount(draws.shifts[:, 0] * 7 + draws.shifts[:, 1], minlength=49).double()
    chi_square = ((counts - 20_000 / 49) ** 2 / (20_000 / 49)).sum().item()
    assert chi_square < 93  # 48 degrees of freedom: one in ten thousand


def test_rise_masks_equal_those_made_by_scikit_image():
    """RISE enlarges a grid to one cell more than the image and crops it at the shift."""
    grid = rx.Grid(cells=4, style="rise")
    basis = Basis.of(grid, 30, 22, CPU)
    draws = basis.draw(seed=1, start=0, stop=20)
    for cells, (down, right), mask in zip(draws.grids, draws.shifts, basis.masks(draws, torch.float64), strict=True):
        large = resize(cells.numpy(), (5 * 8, 5 * 6), order=1, mode="reflect", anti_aliasing=False)
        np.testing.assert_allclose(mask.numpy(), large[down : down + 30, right : right + 22], atol=1e-12)
    assert draws.shifts[:, 0].max() == 7
    assert draws.shifts[:, 1].max() == 5


@pytest.mark.parametrize("wrong", [{"cells": 1}, {"cells": 51}, {"keep": 0.0}, {"keep": 1.0}])
def test_a_grid_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        rx.Grid(**wrong)


def test_too_many_cells_for_the_image_are_refused():
    with pytest.raises(ConfigurationError, match="too many"):
        Basis.of(rx.Grid(cells=30), 12, 12, CPU)


def test_sums_do_not_depend_on_how_many_kinds_are_summed_at_a_time(monkeypatch):
    basis = Basis.of(rx.Grid(cells=3), 9, 8, CPU)
    draws, weights = basis.draw(seed=0, start=0, stop=40), torch.rand(40, 7, dtype=torch.float64)
    expected = basis.sums(draws, weights)
    monkeypatch.setattr(masks, "MAX_NUMBERS", 800)
    assert torch.equal(basis.sums(draws, weights), expected)
