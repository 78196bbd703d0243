"""Metrics of a map compared with Quantus 0.6.0.

Quantus is called for one map at a time, because it normalises a batch of maps together.
"""

import time
import warnings

import numpy as np
import pytest
import torch

from repeat_xai import metrics

quantus = pytest.importorskip("quantus")
pytestmark = pytest.mark.filterwarnings("ignore")
SIDE = 224


def maps(kind, count=4):
    generator = torch.Generator().manual_seed(0)
    if kind == "normal":
        return torch.randn(count, SIDE, SIDE, generator=generator)
    if kind == "heavy":
        return torch.rand(count, SIDE, SIDE, generator=generator) ** 8
    coarse = torch.rand(count, 1, 7, 7, generator=generator)
    return torch.nn.functional.interpolate(coarse, SIDE, mode="bilinear")[:, 0]


def segmentations(count=4):
    objects = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    for i in range(count):
        objects[i, 20 * i : 90 + 20 * i, 40:160] = True
    return objects


def by_quantus(metric, values, objects=None):
    """Return the score that Quantus gives each map by itself."""
    scores = []
    for i, map_ in enumerate(values.numpy()):
        x = np.zeros((1, 1, SIDE, SIDE))
        batches = {"a_batch": map_[None, None]}
        if objects is not None:
            batches["s_batch"] = objects[i].numpy()[None, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores += list(metric(model=None, x_batch=x, y_batch=np.zeros(1, int), **batches))
    return np.array(scores, dtype=float)


QUIET = {"disable_warnings": True, "display_progressbar": False}
KINDS = pytest.mark.parametrize("kind", ["normal", "heavy", "smooth"])


@KINDS
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (metrics.complexity, lambda: quantus.Complexity(**QUIET)),
        (metrics.sparseness, lambda: quantus.Sparseness(**QUIET)),
        (metrics.effective_complexity, lambda: quantus.EffectiveComplexity(eps=1e-5, **QUIET)),
    ],
)
def test_complexity_equals_quantus(kind, ours, theirs):
    values = maps(kind)
    np.testing.assert_allclose(ours(values), by_quantus(theirs(), values.double()), rtol=1e-6)


@KINDS
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (metrics.top_k_intersection, lambda: quantus.TopKIntersection(k=1000, **QUIET)),
        (metrics.relevance_rank, lambda: quantus.RelevanceRankAccuracy(**QUIET)),
        (metrics.pointing_game, lambda: quantus.PointingGame(**QUIET)),
        (
            metrics.attribution_mass,
            lambda: quantus.AttributionLocalisation(abs=False, positive_attributions=True, **QUIET),
        ),
    ],
)
def test_localisation(kind, ours, theirs):
    """Quantus is asked for signed maps, as ours are; by default it takes magnitudes."""
    values, objects = maps(kind), segmentations()
    metric = theirs()
    metric.abs = False
    np.testing.assert_allclose(ours(values, objects), by_quantus(metric, values.double(), objects), rtol=1e-6)


@KINDS
def test_histogram_entropy(kind):
    from quantus.functions.complexity_func import discrete_entropy

    values = maps(kind).double()
    expected = [discrete_entropy(map_.numpy(), map_.numpy()) for map_ in values]
    np.testing.assert_allclose(metrics.histogram_entropy(values), expected, rtol=1e-6)


def test_values_on_the_edges_of_bins_are_counted_as_by_numpy():
    grid = (torch.arange(SIDE * SIDE) % 101).view(1, SIDE, SIDE).double() / 100
    counts = np.histogram(grid.numpy(), bins=100)[0]
    shares = counts[counts > 0] / counts.sum()
    assert metrics.histogram_entropy(grid).item() == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12)


@pytest.mark.full
def test_metrics_of_maps_are_ten_times_faster_than_quantus(capsys):
    """The median time of three runs over 256 maps, which Quantus handles in batches of its own."""
    theirs = {
        "complexity": quantus.Complexity(**QUIET),
        "sparseness": quantus.Sparseness(**QUIET),
        "effective_complexity": quantus.EffectiveComplexity(**QUIET),
        "top_k_intersection": quantus.TopKIntersection(k=1000, **QUIET),
        "relevance_rank": quantus.RelevanceRankAccuracy(**QUIET),
        "pointing_game": quantus.PointingGame(**QUIET),
        "attribution_mass": quantus.AttributionLocalisation(**QUIET),
    }
    values, objects = maps("heavy", 256), segmentations(256)
    x = np.zeros((256, 1, SIDE, SIDE), dtype=np.float32)
    batches = {"a_batch": values.numpy()[:, None], "s_batch": objects.numpy()[:, None]}
    ratios = {}
    for name, metric in theirs.items():
        slow = timed(lambda metric=metric: metric(model=None, x_batch=x, y_batch=np.zeros(256, int), **batches))
        fast = timed(lambda name=name: metrics.METRICS[name](values, objects))
        ratios[name] = slow / fast
        with capsys.disabled():
            print(f"\n{name}: Quantus {slow:.2f} s, ours {fast:.3f} s, {slow / fast:.1f} times", end="")
    assert min(ratios.values()) >= 10


def timed(run):
    times = []
    for _ in range(3):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return float(np.median(times))
