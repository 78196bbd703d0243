"""Golden values to the last digit, hand-made maps, and what a metric says of a map that says nothing."""

import math

import pytest
import torch

import repeat_xai as rx
from repeat_xai import metrics
from repeat_xai.metrics import METRICS

GOLDEN = ((37 * torch.arange(64) + 5) % 64).double().view(8, 8) / 64
SQUARE = torch.zeros(8, 8, dtype=torch.bool)
SQUARE[2:6, 2:6] = True


@pytest.mark.parametrize(
    ("name", "found", "expected"),
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
def test_golden_values(name, found, expected):
    assert found.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_many_maps_at_once_score_as_each_alone(name):
    metric = METRICS[name]
    drawn = torch.Generator().manual_seed(0)
    maps = torch.randn(2, 3, 40, 40, generator=drawn)
    masks = torch.rand(2, 3, 40, 40, generator=drawn) < 0.3
    found = metric(maps, masks)
    assert found.shape == (2, 3)
    assert found.dtype == torch.float64
    for i in range(2):
        for j in range(3):
            assert metric(maps[i, j], masks[i, j]).item() == pytest.approx(found[i, j].item(), rel=1e-12)


NOTHING = {
    "zero": torch.zeros(40, 40),
    "constant": torch.full((40, 40), 3.0),
    "huge": torch.full((40, 40), 1e300, dtype=torch.float64),
    "tiny": torch.full((40, 40), 1e-300, dtype=torch.float64),
    "single pixel": torch.zeros(40, 40).index_put((torch.tensor(7), torch.tensor(9)), torch.tensor(2.0)),
}
N = 40 * 40
SAID = {
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


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("kind", NOTHING)
def test_a_map_that_says_nothing_has_a_score_of_its_own(name, kind):
    assert METRICS[name](NOTHING[kind]).item() == pytest.approx(SAID[name][kind], abs=1e-12)


@pytest.mark.parametrize("name", ["top_k_intersection", "relevance_rank", "pointing_game", "attribution_mass"])
@pytest.mark.parametrize("kind", ["constant", "tiny"])
def test_a_constant_map_finds_as_much_as_chance(name, kind):
    mask = torch.zeros(40, 40, dtype=torch.bool)
    mask[:10] = True
    assert METRICS[name](NOTHING[kind], mask).item() == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["top_k_intersection", "relevance_rank", "pointing_game", "attribution_mass"])
def test_where_there_is_nothing_to_be_found_the_score_is_undefined(name):
    maps = torch.rand(2, 40, 40)
    masks = torch.stack((torch.zeros(40, 40).bool(), torch.ones(40, 40).bool()))
    assert METRICS[name](maps, masks).isnan().tolist() == [True, False]


def test_no_weight_at_all_has_no_share_anywhere():
    assert metrics.attribution_mass(-torch.rand(4, 4), torch.ones(4, 4).bool()).isnan()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: metrics.complexity(torch.full((4, 4), torch.nan)), "NaN or infinite"),
        (lambda: metrics.complexity(torch.ones(4)), r"\[..., height, width\], not \[4\]"),
        (lambda: metrics.complexity(torch.ones(0, 4)), "height, width"),
        (lambda: METRICS["pointing_game"](torch.ones(4, 4)), "pointing_game needs masks"),
        (lambda: metrics.pointing_game(torch.ones(4, 4), torch.ones(4, 4)), r"bool \[4, 4\] .* not torch.float32"),
        (lambda: metrics.pointing_game(torch.ones(4, 4), torch.ones(2, 4, 4).bool()), "bool"),
        (lambda: metrics.top_k_intersection(torch.ones(4, 4), torch.ones(4, 4).bool()), "k is 1000, but .* 16"),
        (lambda: metrics.effective_complexity(torch.ones(4, 4), share=1.0), "share must be"),
        (lambda: metrics.histogram_entropy(torch.ones(4, 4), bins=0), "bins must be"),
    ],
)
def test_what_cannot_be_judged_is_refused(wrong, message):
    with pytest.raises(rx.RepeatError, match=message):
        wrong()


def test_boxes_become_a_mask():
    mask = metrics.boxed([(-3.0, 1.0, 2.0, 3.0), (3.0, 0.0, 99.0, 1.0)], height=4, width=5)
    assert mask.int().tolist() == [[0, 0, 0, 1, 1], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]


def test_every_metric_says_which_way_is_better_and_whose_it_is():
    for name, metric in METRICS.items():
        assert metric.name == name == metric.function.__name__
        assert metric.better in ("higher", "lower", "neither")
        assert metric.citation
