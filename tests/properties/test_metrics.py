"""What must hold of every metric for any map: bounds, and blindness to scale and to the order of pixels."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repeat_xai.metrics import METRICS

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
places = st.lists(st.booleans(), min_size=N, max_size=N)
anything = {"name": st.sampled_from(sorted(BOUNDS)), "values": values | coarse, "places": places}


def scored(name, values, places):
    maps, masks = torch.tensor(values).view(6, 6), torch.tensor(places).view(6, 6)
    return METRICS[name](maps, masks).item()


def alike(a, b):
    return (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, abs=1e-9)


@settings(deadline=None)
@given(**anything)
def test_scores_lie_within_bounds_or_are_undefined(name, values, places):
    low, high = BOUNDS[name]
    found = scored(name, values, places)
    if math.isnan(found):
        assert METRICS[name].needs == "masks"
        assert not any(places) or max(values) <= 0
    else:
        assert low - 1e-12 <= found <= high + 1e-12


@settings(deadline=None)
@given(**anything, power=st.integers(-8, 8))
def test_the_scale_of_a_map_does_not_matter(name, values, places, power):
    scaled = [value * 2.0**power for value in values]
    assume(torch.equal(torch.tensor(scaled) * 2.0**-power, torch.tensor(values)))  # float32 has no room below 1e-45
    assert alike(scored(name, values, places), scored(name, scaled, places))


@settings(deadline=None)
@given(**anything, order=st.permutations(range(N)))
def test_the_order_of_pixels_does_not_matter(name, values, places, order):
    moved = [values[i] for i in order], [places[i] for i in order]
    assert alike(scored(name, values, places), scored(name, *moved))


@settings(deadline=None)
@given(values=values | coarse, places=places, k=st.integers(1, N))
def test_the_top_k_and_the_rest_find_all_there_is(values, places, k):
    """|top-k ∩ S| of the map and |top-(n − k) ∩ S| of its opposite make |S|, also where pixels tie."""
    from repeat_xai.metrics import top_k_intersection

    maps, masks = torch.tensor(values).view(6, 6), torch.tensor(places).view(6, 6)
    if not any(places) or k == N:
        return
    top, rest = top_k_intersection(maps, masks, k=k) * k, top_k_intersection(-maps, masks, k=N - k) * (N - k)
    assert (top + rest).item() == pytest.approx(sum(places))
