"""Histograms and curves show exactly the numbers they are given."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

import repeat_xai as rx
from repeat_xai.metrics import Calibration, detection
from repeat_xai.output import figures


@pytest.fixture
def groups():
    random = np.random.default_rng(0)
    return {
        "known": torch.from_numpy(random.normal(0.08, 0.01, 90)),
        "unknown": torch.from_numpy(random.normal(0.16, 0.02, 60)),
    }


def outline(patch):
    """Return the counts and edges of a histogram that is drawn as one shape."""
    corners = patch.get_path().vertices
    edges = np.unique(corners[:, 0])
    return np.array([corners[corners[:, 0] == edge, 1].max() for edge in edges]), edges


def test_a_histogram_counts_every_image_in_shared_bins(groups):
    axes = figures.histograms(groups).axes[0]
    assert [to_hex(patch.get_edgecolor()).upper() for patch in axes.patches] == ["#009E73", "#D55E00"]
    for patch, scores in zip(axes.patches, groups.values(), strict=True):
        heights, edges = outline(patch)
        counts = np.histogram(scores, edges)[0]
        assert counts.sum() == len(scores)
        np.testing.assert_array_equal(heights, np.maximum(np.append(counts, 0), np.append(0, counts)))
    np.testing.assert_array_equal(outline(axes.patches[0])[1], outline(axes.patches[1])[1])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["known (90)", "unknown (60)"]


def test_the_mixture_is_drawn_over_the_sum_of_all_datasets(groups):
    split = detection.mixture(torch.cat([*groups.values()]))
    figure = figures.histograms(groups, split)
    *kinds, threshold = figure.axes[0].lines
    edges = outline(figure.axes[0].patches[0])[1]
    for kind, line in enumerate(kinds):
        area = line.get_ydata().mean() * np.ptp(line.get_xdata()) / (edges[1] - edges[0])
        assert area == pytest.approx(150 * split.weights[kind], rel=0.05)
    assert threshold.get_xdata()[0] == split.threshold
    assert figure.get_suptitle().replace("\n", " ") == split.statement


def test_a_mixture_that_does_not_separate_is_not_drawn(groups):
    split = detection.mixture(groups["known"])
    assert not figures.histograms(groups, split).axes[0].lines
    assert "one group" in figures.histograms(groups, split).get_suptitle()


@pytest.mark.slow
@pytest.mark.parametrize("methods", [1, 2, 3, 5])
def test_methods_stand_side_by_side_on_scales_of_their_own(groups, methods, tmp_path):
    scores_by_method = {f"$m{i}": {name: scores * 10.0**-i for name, scores in groups.items()} for i in range(methods)}
    figure = figures.histograms_by_method(scores_by_method, {"$m0": detection.mixture(torch.cat([*groups.values()]))})
    figure.savefig(tmp_path / "a.png", dpi=40)
    assert [axes.get_title() for axes in figure.axes] == list(scores_by_method)
    assert [len(axes.lines) for axes in figure.axes] == [3] + [0] * (methods - 1)
    assert [axes.get_ylabel() for axes in figure.axes] == ["images" if i % 3 == 0 else "" for i in range(methods)]
    for i, axes in enumerate(figure.axes):
        assert axes.get_xlim()[1] == pytest.approx(figure.axes[0].get_xlim()[1] * 10.0**-i)


def test_roc_curves_are_drawn_unchanged_with_their_area(groups):
    good = detection.roc(groups["known"], groups["unknown"])
    bad = detection.roc(groups["unknown"], groups["known"])
    figure = figures.roc({"good": good, "bad": bad})
    diagonal, *lines = figure.axes[0].lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    for line, curve in zip(lines, (good, bad), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), curve.false)
        np.testing.assert_array_equal(line.get_ydata(), curve.true)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"good  {good.area:.3f}", f"bad  {bad.area:.3f}"]
    assert len({line.get_linestyle() for line in lines}) == 2


def test_the_discs_of_a_reliability_diagram_are_as_large_as_their_bins():
    nan = torch.nan
    calibration = Calibration(
        stated=torch.tensor([0.1, nan, 0.9]),
        observed=torch.tensor([0.2, nan, 0.7]),
        pixels=torch.tensor([0.75, 0.0, 0.25]),
        error=0.125,
        brier=0.0625,
        flips=0.0,
        decided=0.5,
        held=(None, None),
    )
    axes = figures.reliability(calibration).axes[0]
    discs = axes.collections[0]
    np.testing.assert_allclose(discs.get_offsets(), [[0.1, 0.2], [0.9, 0.7]], rtol=1e-6)
    assert discs.get_sizes()[0] == pytest.approx(3 * discs.get_sizes()[1])
    assert axes.get_title() == "calibration error 0.125  ·  Brier score 0.0625"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: figures.histograms({}),
        lambda: figures.histograms({"a": torch.tensor([1.0, torch.nan])}),
        lambda: figures.histograms_by_method({}),
    ],
)
def test_nothing_to_draw_is_refused(wrong):
    with pytest.raises(rx.RepeatError, match="there are no"):
        wrong()


@pytest.mark.parametrize("name", [r"u$\foo$", "one $", "_hidden"])
def test_a_legend_shows_the_name_of_any_dataset_as_it_is(groups, name, tmp_path):
    named = {name: groups["known"], "unknown": groups["unknown"]}
    alone, by_method = figures.histograms(named), figures.histograms_by_method({name: named})
    curves = figures.roc({name: detection.roc(groups["known"], groups["unknown"])})
    legends = [alone.axes[0].get_legend(), *by_method.legends, *curves.legends]
    for number, (figure, legend) in enumerate(zip((alone, by_method, curves), legends, strict=True)):
        figure.savefig(tmp_path / f"{number}.png")
        shown = legend.get_texts()[0].get_text().replace(r"\$", "$").strip()
        assert shown.startswith((f"{name} (90)", f"{name}  "))
