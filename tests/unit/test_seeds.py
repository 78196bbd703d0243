"""Streams of random numbers are found by name and number."""

import numpy as np
from scipy import stats

from repeat_xai.seeds import fold, uniforms


def test_any_slice_is_the_same_however_the_table_is_cut():
    whole = uniforms(3, start=0, stop=200, width=51)
    pieces = [uniforms(3, start=a, stop=a + 25, width=51) for a in range(0, 200, 25)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


def test_values_are_uniform_and_rows_differ():
    values = uniforms(fold(0, "a"), start=0, stop=2000, width=6)
    assert stats.kstest(values.flatten(), "uniform").pvalue > 1e-4
    assert len(np.unique(values)) == values.size
    assert abs(np.corrcoef(values.T) - np.eye(6)).max() < 0.1


def test_folding_tells_every_part_apart():
    seeds = [fold(s, p, i) for s in (0, 1) for p in ("a", "b") for i in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert fold(1, 23) != fold(12, 3)
