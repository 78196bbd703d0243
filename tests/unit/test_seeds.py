"""Tests that random numbers depend on names and row numbers alone."""

import numpy as np
from scipy import stats

from repeat_xai.seeds import fold, uniforms


def test_rows_are_the_same_in_whatever_slices_they_are_read():
    whole = uniforms(3, start=0, stop=200, width=51)
    slices = [uniforms(3, start=a, stop=a + 25, width=51) for a in range(0, 200, 25)]
    np.testing.assert_array_equal(np.concatenate(slices), whole)


def test_values_are_uniform_and_rows_differ():
    values = uniforms(fold(0, "a"), start=0, stop=2000, width=6)
    assert stats.kstest(values.flatten(), "uniform").pvalue > 1e-4
    assert len(np.unique(values)) == values.size
    assert abs(np.corrcoef(values.T) - np.eye(6)).max() < 0.1


def test_every_part_changes_the_folded_seed():
    seeds = [fold(s, p, i) for s in (0, 1) for p in ("a", "b") for i in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert fold(1, 23) != fold(12, 3)
