"""Metrics of a map: golden values, maps made by hand, and maps without structure."""

import math

import pytest
import torch

import repeat_xai as rx
from repeat_xai import metrics
from repeat_xai.metrics import map_metrics

MAP_METRICS = map_metrics()

GOLDEN = ((37 * torch.arange(64) + 5) % 64).double().view(8, 8) / 64
SQUARE = torch.zeros(8, 8, dtype=torch.bool)
SQUARE[2:6, 2:6] = True


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("complexity", metrics.complexity(GOLDEN), 3.957628752),
        ("sparseness", metrics.sparseness(GOLDEN), 65 / 192),  # (n + 1) / 3n for 0, 1, …, n − 1
        ("sparseness, as Quantus adds 1e-7", metrics.sparseness(GOLDEN / GOLDEN.max() + 1e-7), 0.3385415990),
        ("histogram entropy", metrics.histogram_entropy(GOLDEN**3), 3.4083024974),
        ("top 10", metrics.top_k_intersection(GOLDEN, SQUARE, k=10), 0.3),
        ("relevance rank", metrics.relevance_rank(GOLDEN, SQUARE), 0.1875),
        ("attribution mass", metrics.attribution_mass(GOLDEN, SQUARE), 0.2420634921),
        ("pointing game", metrics.pointing_game(GOLDEN, SQUARE), 0.0),
    ],
)
def test_metrics_equal_values_computed_by_hand(name, value, expected):
    assert value.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", MAP_METRICS)
def test_a_batch_of_maps_scores_as_each_map_alone(name):
    metric = MAP_METRICS[name]
    generator = torch.Generator().manual_seed(0)
    maps = torch.randn(2, 3, 40, 40, generator=generator)
    segmentations = torch.rand(2, 3, 40, 40, generator=generator) < 0.3
    scores = metric(maps, segmentations)
    assert scores.shape == (2, 3)
    assert scores.dtype == torch.float64
    for i in range(2):
        for j in range(3):
            assert metric(maps[i, j], segmentations[i, j]).item() == pytest.approx(scores[i, j].item(), rel=1e-12)


WITHOUT_STRUCTURE = {
    "zero": torch.zeros(40, 40),
    "constant": torch.full((40, 40), 3.0),
    "huge": torch.full((40, 40), 1e300, dtype=torch.float64),
    "tiny": torch.full((40, 40), 1e-300, dtype=torch.float64),
    "single pixel": torch.zeros(40, 40).index_put((torch.tensor(7), torch.tensor(9)), torch.tensor(2.0)),
}
N = 40 * 40
EXPECTED = {
    "complexity": {"zero": 0, "constant": math.log(N), "huge": math.log(N), "tiny": math.log(N), "single pixel": 0},
    "sparseness": {"zero": 0, "constant": 0, "huge": 0, "tiny": 0, "single pixel": 1 - 1 / N},
    "histogram_entropy": {
        "zero": 0,
        "constant": 0,
        "huge": 0,
        "tiny": 0,
        "single pixel": -((N - 1) / N) * math.log((N - 1) / N) + math.log(N) / N,
    },
    "effective_complexity": {"zero": 0, "constant": N, "huge": N, "tiny": N, "single pixel": 1},
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("kind", WITHOUT_STRUCTURE)
def test_complexity_of_a_map_without_structure_is_defined(name, kind):
    assert MAP_METRICS[name](WITHOUT_STRUCTURE[kind]).item() == pytest.approx(EXPECTED[name][kind], abs=1e-12)


LOCALISATION = ["top_k_intersection", "relevance_rank", "pointing_game", "attribution_mass"]


@pytest.mark.parametrize("name", LOCALISATION)
@pytest.mark.parametrize("kind", ["constant", "tiny"])
def test_a_constant_map_scores_as_chance_does(name, kind):
    segmentation = torch.zeros(40, 40, dtype=torch.bool)
    segmentation[:10] = True
    assert MAP_METRICS[name](WITHOUT_STRUCTURE[kind], segmentation).item() == pytest.approx(0.25)


@pytest.mark.parametrize("name", LOCALISATION)
def test_localisation_is_undefined_for_an_empty_segmentation(name):
    maps = torch.rand(2, 40, 40)
    segmentations = torch.stack((torch.zeros(40, 40).bool(), torch.ones(40, 40).bool()))
    assert MAP_METRICS[name](maps, segmentations).isnan().tolist() == [True, False]


def test_attribution_mass_is_undefined_for_a_map_without_positive_values():
    assert metrics.attribution_mass(-torch.rand(4, 4), torch.ones(4, 4).bool()).isnan()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.complexity(torch.full((4, 4), torch.nan)), "NaN"),
        (lambda: metrics.complexity(torch.ones(4)), "height, width"),
        (lambda: metrics.complexity(torch.ones(0, 4)), "height, width"),
        (lambda: MAP_METRICS["pointing_game"](torch.ones(4, 4)), "needs segmentations"),
        (lambda: metrics.pointing_game(torch.ones(4, 4), torch.ones(4, 4)), "bool.* not torch.float32"),
        (lambda: metrics.pointing_game(torch.ones(4, 4), torch.ones(2, 4, 4).bool()), "bool"),
        (lambda: metrics.top_k_intersection(torch.ones(4, 4), torch.ones(4, 4).bool()), "k is 1000, but .* 16"),
        (lambda: metrics.effective_complexity(torch.ones(4, 4), share=1.0), "share"),
        (lambda: metrics.histogram_entropy(torch.ones(4, 4), bins=0), "bins"),
    ],
)
def test_wrong_maps_and_segmentations_are_refused(call, message):
    with pytest.raises(rx.RepeatError, match=message):
        call()


def test_boxes_become_a_segmentation():
    boxes = [(-3.0, 1.0, 2.0, 3.0), (3.0, 0.0, 99.0, 1.0)]
    segmentation = metrics.segmentation_of_boxes(boxes, height=4, width=5)
    assert segmentation.int().tolist() == [[0, 0, 0, 1, 1], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
