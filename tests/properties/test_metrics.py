"""Properties of every metric of a map: its bounds, and that neither scale nor the order of pixels matters."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repeat_xai.metrics import METRICS, top_k_intersection

N = 36
BOUNDS = {
    "complexity": (0, math.log(N)),
    "sparseness": (0, 1),
    "histogram_entropy": (0, math.log(N)),
    "effective_complexity": (0, N),
    "relevance_rank": (0, 1),
    "pointing_game": (0, 1),
    "attribution_mass": (0, 1),
}
values = st.lists(st.floats(-1e6, 1e6, width=32), min_size=N, max_size=N)
coarse = st.lists(st.integers(-3, 3).map(float), min_size=N, max_size=N)
inside = st.lists(st.booleans(), min_size=N, max_size=N)
anything = {"name": st.sampled_from(sorted(BOUNDS)), "values": values | coarse, "inside": inside}


def score(name, values, inside):
    """Return the metric of a map of 6×6 pixels and its segmentation."""
    return METRICS[name](torch.tensor(values).view(6, 6), torch.tensor(inside).view(6, 6)).item()


def equal(a, b):
    """Return whether two scores are equal up to rounding, or both undefined."""
    return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, abs=1e-9)


@settings(deadline=None)
@given(**anything)
def test_scores_lie_within_bounds_or_are_undefined(name, values, inside):
    low, high = BOUNDS[name]
    value = score(name, values, inside)
    if math.isnan(value):
        assert METRICS[name].needs == "segmentation"
        assert not any(inside) or max(values) <= 0
    else:
        assert low - 1e-12 <= value <= high + 1e-12


@settings(deadline=None)
@given(**anything, power=st.integers(-8, 8))
def test_the_scale_of_a_map_does_not_matter(name, values, inside, power):
    scaled = [value * 2.0**power for value in values]
    assume(torch.equal(torch.tensor(scaled) * 2.0**-power, torch.tensor(values)))  # float32 has no room below 1e-45
    assert equal(score(name, values, inside), score(name, scaled, inside))


@settings(deadline=None)
@given(**anything, order=st.permutations(range(N)))
def test_the_order_of_pixels_does_not_matter(name, values, inside, order):
    moved = [values[i] for i in order], [inside[i] for i in order]
    assert equal(score(name, values, inside), score(name, *moved))


@settings(deadline=None)
@given(values=values | coarse, inside=inside, k=st.integers(1, N))
def test_the_top_k_and_the_other_pixels_together_cover_the_object(values, inside, k):
    """|top-k ∩ S| of the map and |top-(n − k) ∩ S| of its negative add up to |S|, even where pixels tie."""
    maps, segmentations = torch.tensor(values).view(6, 6), torch.tensor(inside).view(6, 6)
    if not any(inside) or k == N:
        return
    top, rest = (
        top_k_intersection(maps, segmentations, k=k) * k,
        top_k_intersection(-maps, segmentations, k=N - k) * (N - k),
    )
    assert (top + rest).item() == pytest.approx(sum(inside))
