"""The histogram of scores, and the mixture on it."""

import numpy as np
import pytest
import torch

from repeat_xai.metrics.detection import mixture
from repeat_xai.output.page.histogram_chart import HEIGHT, WIDTH, chart


@pytest.fixture
def scores():
    generator = np.random.default_rng(0)
    return [*generator.normal(0.05, 0.003, 60), *generator.normal(0.09, 0.004, 40)]


def points(path):
    return np.array([[float(v) for v in place.split()] for place in path.removeprefix("M").split("L")])


def test_bars_hold_every_image_and_curves_as_many_as_the_mixture_says(scores):
    split = mixture(torch.tensor(scores, dtype=torch.float64))
    drawn = chart(scores, (), split)
    assert sum(int(bar.title.split(": ")[1].split(" images")[0]) for bar in drawn.bars) == 100
    per_image = next(b.height / int(b.title.split(": ")[1].split()[0]) for b in drawn.bars if b.height)
    for curve, weight in zip(drawn.curves, split.weights, strict=True):
        x, y = points(curve).T
        images = np.trapezoid(HEIGHT - y, x) / drawn.bars[0].width / per_image
        assert images == pytest.approx(100 * weight, rel=0.01)
    assert drawn.cut is not None
    assert float(drawn.cut[1]) == pytest.approx(split.threshold, abs=1e-4)


def test_the_highest_of_all_fills_the_height_and_all_lies_inside(scores):
    drawn = chart(scores, scores[:30], mixture(torch.tensor(scores + scores[:30], dtype=torch.float64)))
    tops = [bar.height + bar.above for bar in drawn.bars] + [
        HEIGHT - points(curve)[:, 1].min() for curve in drawn.curves
    ]
    assert max(tops) == pytest.approx(HEIGHT, abs=0.1)
    assert drawn.bars[-1].left + drawn.bars[-1].width == pytest.approx(WIDTH)
    assert drawn.reference
    assert sum(int(bar.title.split(", ")[1].split()[0]) for bar in drawn.bars) == 30


def test_no_curves_where_one_distribution_will_do():
    same = list(np.random.default_rng(1).normal(0.05, 0.003, 60))
    drawn = chart(same, (), mixture(torch.tensor(same, dtype=torch.float64)))
    assert (drawn.curves, drawn.cut) == ([], None)
    assert chart(same, (), None).curves == []


@pytest.mark.parametrize("value", [0.0, 0.07])
def test_scores_that_are_all_alike(value):
    drawn = chart([value] * 5, (), mixture(torch.full((5,), value)))
    assert max(bar.height for bar in drawn.bars) == HEIGHT
    assert drawn.curves == []
