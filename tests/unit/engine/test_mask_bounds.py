"""Bounds on the number of masks equal their formulas, and hold in an experiment."""

import math

import pytest
import torch
from scipy import stats

import repeat_xai as rx
from repeat_xai.engine.mask_bounds import empirical, mcdiarmid, paper, similarity_range
from repeat_xai.engine.masks import Basis
from repeat_xai.errors import ConfigurationError
from repeat_xai.output import figures as plot

WANTED = {"error": 0.035, "risk": 0.05}


def test_the_printed_numbers_do_not_follow_from_the_printed_bound():
    """The paper says 1258 and some 1000 masks for s in [0.5, 0.84]; its formula says 512 and 392."""
    assert paper(low=0.5, high=0.84, **WANTED) == 512
    assert paper(low=0.5, high=0.84, error=0.04, risk=0.05) == 392


def test_mcdiarmids_bound_equals_its_formula():
    assert mcdiarmid(low=0.0, high=1.0, **WANTED) == math.ceil(math.log(40) / (2 * 0.035**2)) == 1506
    assert mcdiarmid(low=-1.0, high=1.0, **WANTED) == math.ceil(4 * math.log(40) / (2 * 0.035**2))
    assert mcdiarmid(low=0.5, high=0.84, **WANTED) == math.ceil(0.84**2 * math.log(40) / (2 * 0.035**2))


def test_the_empirical_number_equals_its_formula_by_scipy():
    expected = math.ceil((stats.norm.ppf(0.975) * 0.4 / 0.035) ** 2)
    assert empirical(deviation=0.4, **WANTED) == expected


@pytest.mark.parametrize("wrong", [{"error": 0.0}, {"risk": 0.0}, {"risk": 1.0}])
def test_numbers_for_which_there_is_no_bound_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="no bound"):
        paper(low=0.5, high=0.8, **(WANTED | wrong))


def test_the_range_is_that_of_similarities_measured_one_by_one(encoder, image):
    measured = similarity_range(encoder, [image, image], masks=50, seed=3)
    grid = rx.Grid()
    basis = Basis.of(grid, *image.pixels.shape[1:], encoder.device)
    row = rx.seeds.fold(3, image.photo.digest)
    masks = basis.masks(basis.draw(seed=row, start=0, stop=50), torch.float64)
    codes = encoder(image.pixels.double() * masks[:, None])
    s = torch.cosine_similarity(encoder(image.pixels[None]), codes)
    torch.testing.assert_close(measured.similarities[0], s)
    assert measured.low == pytest.approx(s.min().item())
    assert measured.high == pytest.approx(s.max().item())
    summands = s[:, None, None] * masks
    assert measured.deviation >= summands.std(0, correction=0).max().item()
    assert measured.deviation <= 2 * summands.std(0, correction=0).max().item()


@pytest.mark.slow
def test_the_bound_and_the_empirical_number_hold(image):
    """Over 100 sets of masks, the error at any pixel stays below t in about 95 % of them."""
    encoder = rx.load_encoder(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()))
    measured = similarity_range(encoder, [image], masks=1000, seed=0)
    wanted = {"error": 0.08, "risk": 0.05}
    truth = rx.Relax(masks=10_000, normalise="count", chunk=1000).importance(encoder, image, seed=1)
    for masks in (
        mcdiarmid(low=measured.low, high=measured.high, **wanted),
        empirical(deviation=measured.deviation, **wanted),
    ):
        relax = rx.Relax(masks=masks, normalise="count", chunk=500)
        maps = torch.stack([relax.importance(encoder, image, seed=seed) for seed in range(2, 102)])
        errors = (maps - truth).abs()
        assert ((errors >= 0.08).double().mean(0) <= 0.05 + 0.05).all()


def test_no_images_is_refused(encoder):
    with pytest.raises(ConfigurationError, match="at least one image"):
        similarity_range(encoder, [], seed=0)


def test_the_figure_shows_the_range(encoder, image):
    measured = similarity_range(encoder, [image], masks=50, seed=3)
    figure = plot.similarities(measured.similarities, low=measured.low, high=measured.high)
    axes = figure.axes[0]
    assert sum(bar.get_height() for bar in axes.patches) == 50
    assert [line.get_xdata()[0] for line in axes.lines] == [measured.low, measured.high]
    assert axes.get_title() == "1 images × 50 masks"
