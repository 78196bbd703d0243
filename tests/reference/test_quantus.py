"""Metrics against Quantus 0.6.0, one map a call: its own batches are normalised together."""

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
    drawn = torch.Generator().manual_seed(0)
    if kind == "normal":
        return torch.randn(count, SIDE, SIDE, generator=drawn)
    if kind == "heavy":
        return torch.rand(count, SIDE, SIDE, generator=drawn) ** 8
    coarse = torch.rand(count, 1, 7, 7, generator=drawn)
    return torch.nn.functional.interpolate(coarse, SIDE, mode="bilinear")[:, 0]


def masks(count=4):
    found = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    for i in range(count):
        found[i, 20 * i : 90 + 20 * i, 40:160] = True
    return found


def scored(metric, found, where=None):
    """Quantus' score of each map by itself."""
    scores = []
    for i, one in enumerate(found.numpy()):
        x = np.zeros((1, 1, SIDE, SIDE))
        given = {"a_batch": one[None, None]} | ({} if where is None else {"s_batch": where[i].numpy()[None, None]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores += list(metric(model=None, x_batch=x, y_batch=np.zeros(1, int), **given))
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
def test_complexity(kind, ours, theirs):
    found = maps(kind)
    np.testing.assert_allclose(ours(found), scored(theirs(), found.double()), rtol=1e-6)


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
    """Signed, as ours; Quantus takes magnitudes unless told otherwise."""
    found, where = maps(kind), masks()
    metric = theirs()
    metric.abs = False
    np.testing.assert_allclose(ours(found, where), scored(metric, found.double(), where), rtol=1e-6)


@KINDS
def test_histogram_entropy(kind):
    from quantus.functions.complexity_func import discrete_entropy

    found = maps(kind).double()
    expected = [discrete_entropy(one.numpy(), one.numpy()) for one in found]
    np.testing.assert_allclose(metrics.histogram_entropy(found), expected, rtol=1e-6)


def test_values_on_the_edges_of_bins_are_counted_as_numpy_does():
    grid = (torch.arange(SIDE * SIDE) % 101).view(1, SIDE, SIDE).double() / 100
    counts = np.histogram(grid.numpy(), bins=100)[0]
    shares = counts[counts > 0] / counts.sum()
    assert metrics.histogram_entropy(grid).item() == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12)


@pytest.mark.full
def test_they_are_ten_times_quicker(capsys):
    """256 maps in one run, medians of three, in Quantus' own batches."""
    theirs = {
        "complexity": quantus.Complexity(**QUIET),
        "sparseness": quantus.Sparseness(**QUIET),
        "effective_complexity": quantus.EffectiveComplexity(**QUIET),
        "top_k_intersection": quantus.TopKIntersection(k=1000, **QUIET),
        "relevance_rank": quantus.RelevanceRankAccuracy(**QUIET),
        "pointing_game": quantus.PointingGame(**QUIET),
        "attribution_mass": quantus.AttributionLocalisation(**QUIET),
    }
    found, where = maps("heavy", 256), masks(256)
    x = np.zeros((256, 1, SIDE, SIDE), dtype=np.float32)
    given = {"a_batch": found.numpy()[:, None], "s_batch": where.numpy()[:, None]}
    ratios = {}
    for name, metric in theirs.items():
        slow = timed(lambda metric=metric: metric(model=None, x_batch=x, y_batch=np.zeros(256, int), **given))
        quick = timed(lambda name=name: metrics.METRICS[name](found, where))
        ratios[name] = slow / quick
        with capsys.disabled():
            print(f"\n{name}: Quantus {slow:.2f} s, ours {quick:.3f} s, {slow / quick:.1f} times", end="")
    assert min(ratios.values()) >= 10


def timed(run):
    times = []
    for _ in range(3):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return float(np.median(times))
