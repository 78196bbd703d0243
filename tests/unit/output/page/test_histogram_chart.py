"""The histogram of scores counts every image, and the mixture's curves are drawn to the same scale."""

import numpy as np
import pytest
import torch

from repeat_xai.metrics.detection import mixture
from repeat_xai.output.page.histogram_chart import HEIGHT, WIDTH, score_chart


@pytest.fixture
def scores():
    generator = np.random.default_rng(0)
    return [*generator.normal(0.05, 0.003, 60), *generator.normal(0.09, 0.004, 40)]


def points(path):
    return np.array([[float(v) for v in place.split()] for place in path.removeprefix("M").split("L")])


def images_of(bar):
    return int(bar.title.split(": ")[1].split(" image")[0])


def test_bars_hold_every_image_and_curves_as_many_as_the_mixture_expects(scores):
    split = mixture(torch.tensor(scores, dtype=torch.float64))
    chart = score_chart(scores, (), split)
    assert sum(map(images_of, chart.bars)) == 100
    per_image = next(bar.height / images_of(bar) for bar in chart.bars if bar.height)
    for curve, weight in zip(chart.curves, split.weights, strict=True):
        x, y = points(curve).T
        images = np.trapezoid(HEIGHT - y, x) / chart.bars[0].width / per_image
        assert images == pytest.approx(100 * weight, rel=0.01)
    assert chart.cut is not None
    assert float(chart.cut[1]) == pytest.approx(split.threshold, abs=1e-4)


def test_the_highest_point_fills_the_height_and_everything_lies_inside(scores):
    chart = score_chart(scores, scores[:30], mixture(torch.tensor(scores + scores[:30], dtype=torch.float64)))
    tops = [bar.height + bar.reference_height for bar in chart.bars]
    tops += [HEIGHT - points(curve)[:, 1].min() for curve in chart.curves]
    assert max(tops) == pytest.approx(HEIGHT, abs=0.1)
    assert chart.bars[-1].left + chart.bars[-1].width == pytest.approx(WIDTH)
    assert chart.has_reference
    assert sum(int(bar.title.split(", ")[1].split()[0]) for bar in chart.bars) == 30


def test_the_vertical_axis_counts_images(scores):
    chart = score_chart(scores, (), None)
    largest = max(chart.bars, key=lambda bar: bar.height)
    for distance_from_top, text in chart.count_ticks:
        assert distance_from_top == pytest.approx(HEIGHT * (1 - int(text) / images_of(largest)), abs=0.01)
    assert chart.count_ticks[0] == (HEIGHT, "0")
    assert len(chart.count_ticks) >= 3


def test_a_mixture_that_does_not_separate_has_no_curves():
    same = list(np.random.default_rng(1).normal(0.05, 0.003, 60))
    chart = score_chart(same, (), mixture(torch.tensor(same, dtype=torch.float64)))
    assert (chart.curves, chart.cut) == ([], None)
    assert score_chart(same, (), None).curves == []


@pytest.mark.parametrize("value", [0.0, 0.07])
def test_scores_that_are_all_equal_make_one_bar(value):
    chart = score_chart([value] * 5, (), mixture(torch.full((5,), value)))
    assert max(bar.height for bar in chart.bars) == HEIGHT
    assert chart.curves == []
    assert [images_of(bar) for bar in chart.bars if bar.height] == [5]
