"""The paper's figures of maps: no text is clipped or covered, and maps are drawn unchanged."""

from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.image import AxesImage

import repeat_xai as rx
from repeat_xai.experiments.paper.figure_data import (
    CutMap,
    ExplanationGrid,
    MarkedPixel,
    PoisonedPair,
    PoisonScores,
    RelaxBesideRepeat,
    RepeatSteps,
    ThresholdCut,
)
from repeat_xai.experiments.paper.figure_request import FigureSource
from repeat_xai.output.paper_figures import draw_figure
from repeat_xai.output.paper_figures.canvas import FULL_WIDTH, Canvas, panel_height
from repeat_xai.output.paper_figures.overview_figure import ABOVE_CUT, BELOW_CUT
from repeat_xai.types import Explanation, Photo

SIDE = 24
SHAPES = {"landscape": (30, 40), "portrait": (40, 30), "square": (32, 32), "banner": (10, 60)}
SHAPES_APART = ("landscape", "portrait", "banner")
TINY = FigureSource("", "tiny")
LONG = FigureSource(
    "CIFAR-10 under autoregressive noise, not the paper's poison", "squeezenet1_1  ·  " * 4, "squeezenet" * 4
)


def photo(shape):
    rows, columns = shape
    picture = np.random.default_rng(0).integers(0, 255, (rows, columns, 3), dtype=np.uint8)
    return Photo(name="$odd$.png", picture=picture, size=shape, box=(0.0, 0.0, float(columns), float(rows)), digest="0")


def explanation(shape, *, votes, seed=0, name="Repeat"):
    drawn = torch.Generator().manual_seed(seed)
    p = torch.rand(SIDE, SIDE, generator=drawn)
    importance = p if votes else 0.7 + p / 20
    return Explanation(
        importance=importance,
        uncertainty=p * (1 - p) if votes else p / 200,
        vote_share=p if votes else None,
        photo=photo(shape),
        provenance={"method": {"name": name}, "encoder": {"name": "tiny"}},
    )


def runs(count):
    maps = torch.rand(count, SIDE, SIDE, generator=torch.Generator().manual_seed(1)).double()
    maps = 0.7799 + 0.0182 * (maps - maps.min()) / (maps.max() - maps.min())  # so that a number stands at the end
    at = maps.mean((1, 2))
    return maps, at, maps >= at[:, None, None]


def steps(shape, count=5):
    maps, at, votes = runs(count)
    p = votes.double().mean(0)
    return draw_figure(RepeatSteps(photo(shape), maps, at, votes, p, p * (1 - p), TINY))


def marked(shape):
    marks = (MarkedPixel("a", 0, 0, "the corner " * 8), MarkedPixel("b", SIDE - 1, SIDE - 1, "the other one"))
    relax = explanation(shape, votes=False, name="Relax")
    return draw_figure(RelaxBesideRepeat(relax, explanation(shape, votes=True), marks, TINY))


def cut(shape):
    importance = runs(1)[0][0]
    quantiles = zip("abcd", (0.2, 0.4, 0.6, 0.8), strict=True)
    cuts = [ThresholdCut(name, importance.quantile(q).item(), 1 - q) for name, q in quantiles]
    return draw_figure(CutMap(photo(shape), importance, cuts, TINY))


def several(shape):
    names = ("Saliency", "GuidedBackprop", "IntegratedGradients", "Relax", "Repeat")
    row = [explanation(shape, votes=name == "Repeat", seed=i, name=name) for i, name in enumerate(names)]
    return draw_figure(ExplanationGrid([row, row], TINY))


def pair(shape):
    clean, poisoned = (explanation(shape, votes=True, seed=seed) for seed in (0, 1))
    return draw_figure(PoisonedPair(clean, poisoned, LONG))


def detected(shape):
    known, unknown = torch.linspace(0, 1, 30).double(), torch.linspace(0.5, 1.5, 30).double()
    names = ("importance", "uncertainty")
    groups = {name: {"clean": known, "poisoned": unknown} for name in names}
    split = rx.metrics.detection.mixture(torch.cat((known, unknown)))
    curve = rx.metrics.detection.roc(known, unknown)
    return draw_figure(PoisonScores(groups, dict.fromkeys(names, split), dict.fromkeys(names, curve), TINY))


def visible_texts(figure):
    """Return every text that is visible, with its box in pixels."""
    figure.draw_without_rendering()
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]:
        texts += legend.get_texts()
    visible = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent()) for text in visible]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "shape"),
    [
        (detected, "square"),
        *((figure, shape) for figure in (steps, marked, cut, several, pair) for shape in SHAPES_APART),
    ],
)
def test_no_text_is_clipped_or_covers_another(figure, shape):
    figure = figure(SHAPES[shape])
    page = figure.bbox
    texts = visible_texts(figure)
    assert len(texts) > 8
    for text, box in texts:
        assert page.x0 <= box.x0 < box.x1 <= page.x1, text
        assert page.y0 <= box.y0 < box.y1 <= page.y1, text
    for (text, box), (other_text, other_box) in combinations(texts, 2):
        width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        assert width < 1 or height < 1, (text, other_text)


@pytest.mark.slow
@pytest.mark.parametrize("figure", [steps, marked, cut, several, pair])
def test_panels_do_not_overlap_and_photos_fill_them(figure):
    figure = figure(SHAPES["landscape"])
    figure.draw_without_rendering()
    places = [axes.get_position() for axes in figure.axes]
    for place, other in combinations(places, 2):
        width = min(place.x1, other.x1) - max(place.x0, other.x0)
        height = min(place.y1, other.y1) - max(place.y0, other.y0)
        assert width < 1e-6 or height < 1e-6
    for axes in (axes for axes in figure.axes if axes.images):
        assert axes.get_position().bounds == pytest.approx(axes.get_position(original=True).bounds, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "shown"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (10, [1, 2, 10])])
def test_the_first_runs_and_the_last_are_shown_with_their_cuts(count, shown):
    maps, at, votes = runs(count)
    figure = steps(SHAPES["landscape"], count)
    panels = {axes.get_ylabel(): axes for axes in figure.axes if axes.get_ylabel()}
    assert list(panels) == [f"k = {run}" for run in shown]
    lines = [axes.lines[0].get_xdata()[0] for axes in figure.axes if axes.lines]
    np.testing.assert_array_equal(lines, at[[run - 1 for run in shown]])
    binary = [image.get_array() for image in figure.findobj(AxesImage) if image.get_array().shape == (SIDE, SIDE)]
    for run in shown:
        assert any(np.array_equal(array, maps[run - 1]) for array in binary)
        assert any(np.array_equal(array, votes[run - 1]) for array in binary)
    assert ("⋮" in [text for text, _ in visible_texts(figure)]) == (count > 3)


def test_a_histogram_of_a_run_counts_every_pixel_on_its_side_of_the_cut():
    maps, _, votes = runs(1)
    counts = next(axes for axes in steps(SHAPES["square"], 1).axes if axes.lines)
    width = np.ptp(maps[0].numpy()) / 40
    assert len(counts.patches) == 2
    for drawn in counts.patches:
        side = {BELOW_CUT: ~votes[0], ABOVE_CUT: votes[0]}[to_hex(drawn.get_facecolor()).upper()]
        x, y = drawn.get_path().vertices.T
        area = abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
        assert area / width == pytest.approx(side.sum().item())


def test_a_cut_map_shows_only_the_pixels_that_reach_the_cut():
    values = runs(1)[0][0]
    figure = cut(SHAPES["square"])
    lines = next(axes for axes in figure.axes if len(axes.lines) == 4).lines
    for line, axes in zip(lines, figure.axes[-4:], strict=True):
        at = line.get_xdata()[0]
        drawn = axes.images[-1].get_array()
        np.testing.assert_array_equal(np.ma.getmaskarray(drawn), values < at)
        np.testing.assert_array_equal(drawn.compressed(), values[values >= at])
        assert axes.images[-1].get_clim() == (values.min(), values.max())
        assert axes.spines["left"].get_edgecolor()[:3] == pytest.approx(
            torch.tensor([int(line.get_color()[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        )
    assert len({line.get_linestyle() for line in lines}) == 4


def test_marks_stand_on_their_pixels_in_all_maps():
    figure = marked(SHAPES["landscape"])
    maps = [axes for axes in figure.axes if axes.lines]
    assert len(maps) == 4
    for axes in maps:
        places = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines]
        assert places == [pytest.approx((20 / SIDE, 15 / SIDE)), pytest.approx((40 - 20 / SIDE, 30 - 15 / SIDE))]


@pytest.mark.slow
def test_votes_are_on_fixed_scales_and_other_maps_on_their_own():
    figure = several(SHAPES["square"])
    maps = [axes.images[-1] for axes in figure.axes if len(axes.images) == 2]
    assert len(maps) == 2 * 2 * 5
    assert [image.get_clim() for image in maps[4::5]] == [(0, 1), (0, 0.25)] * 2
    row = explanation(SHAPES["square"], votes=False, seed=3)
    assert maps[3].get_clim()[0] == row.importance.min()
    assert maps[3].get_clim()[1] == pytest.approx(row.importance.double().quantile(0.995).item())


def test_places_on_a_canvas_are_in_inches_from_the_top_left():
    canvas = Canvas.of(4.0, 2.0)
    assert canvas.axes(1.0, 0.5, 2.0, 1.0).get_position().bounds == pytest.approx((0.25, 0.25, 0.5, 0.5))
    assert panel_height(photo((30, 40)), 2.0) == 1.5
    assert panel_height(photo((10, 100)), 2.0) == 1.3
    assert several(SHAPES["square"]).get_figwidth() == FULL_WIDTH


@pytest.mark.parametrize("text", [r"$\foo$.png", "$odd$.png and $5", "猫.png"])
def test_a_note_is_written_literally_and_within_the_figure(text):
    canvas = Canvas.of(7.0, 1.0)
    canvas.note(text * 6)
    (note,) = canvas.figure.texts
    canvas.figure.draw_without_rendering()
    assert note.get_text() == text * 6
    assert note.get_window_extent().x1 <= canvas.figure.bbox.x1


def test_a_grid_without_explanations_is_refused():
    with pytest.raises(rx.RepeatError, match="no explanations"):
        draw_figure(ExplanationGrid([], TINY))
