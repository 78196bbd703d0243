"""A panel shows each map on its own scale, over the whole photo."""

from dataclasses import replace

import numpy as np
import pytest
from skimage import data

import repeat_xai as rx
from repeat_xai.output import figures


@pytest.fixture
def explanation(encoder):
    preprocessing = rx.Preprocessing(size=(32, 32), resize=36, mean=(0.5,) * 3, std=(0.5,) * 3)
    encoder = rx.load_encoder(encoder.module, preprocessing=preprocessing)
    image = rx.load_image(data.chelsea(), encoder)
    return rx.Repeat(estimator="exact", base=rx.Relax(masks=15), repeats=3)(encoder, image, seed=0)


def titled_images(figure):
    """Draw a figure and return the topmost image of each panel that has a title."""
    figure.canvas.draw()
    return [axes.images[-1] for axes in figure.axes if axes.images and axes.get_title()]


def test_maps_of_votes_are_drawn_unchanged_on_fixed_scales(explanation):
    figure = figures.panel(explanation)
    photo, importance, uncertainty, verdict = titled_images(figure)
    assert importance.get_clim() == (0, 1)
    assert uncertainty.get_clim() == (0, 0.25)
    np.testing.assert_array_equal(importance.get_array(), explanation.importance.numpy())
    np.testing.assert_array_equal(uncertainty.get_array(), explanation.uncertainty.numpy())
    np.testing.assert_array_equal(verdict.get_array(), explanation.verdict().numpy())
    np.testing.assert_array_equal(photo.get_array(), data.chelsea())


def test_the_photo_is_whole_and_maps_lie_where_the_encoder_looked(explanation):
    figure = figures.panel(explanation)
    photo, *maps = titled_images(figure)
    left, top, right, bottom = explanation.photo.box
    assert tuple(photo.get_extent()) == (0, 451, 300, 0)
    for image in maps:
        assert tuple(image.get_extent()) == pytest.approx((left, right, bottom, top))
    for axes in (image.axes for image in (photo, *maps)):
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 451), (300, 0))


def test_the_level_decides_the_verdict(explanation):
    figure = figures.panel(explanation, level=0.6)
    verdict = titled_images(figure)[3]
    np.testing.assert_array_equal(verdict.get_array(), explanation.verdict(0.6).numpy())
    assert verdict.axes.get_title() == "verdict at 60 % of the votes"
    assert not np.array_equal(explanation.verdict(0.6).numpy(), explanation.verdict(0.95).numpy())


@pytest.mark.parametrize(
    "name", ["price $5 and $6.png", "$\\foo$.png", "bad\udcff.png", "x" * 300, "two\nlines", "猫😀.png"]
)
def test_unusual_file_names_are_shown_in_one_line_without_warnings(explanation, name, tmp_path):
    renamed = replace(explanation, photo=replace(explanation.photo, name=name))
    figure = figures.panel(renamed)
    figure.savefig(tmp_path / "a.png", dpi=50)
    caption, movement = figure.get_suptitle().split("\n")
    assert "Sequential" in caption
    assert len(caption) < 140
    assert movement.startswith("Hiding parts of the photo changes the code by")


def test_the_caption_names_method_and_budget(encoder, image):
    exact = rx.Repeat(estimator="exact", base=rx.Relax(masks=15), repeats=3)(encoder, image, seed=0)
    fast = rx.Repeat(base=rx.Relax(masks=15), budget=256)(encoder, image, seed=0)
    assert "REPEAT  ·  repeats 3  ·  masks 15" in figures.panel(exact).get_suptitle()
    assert figures.panel(fast).get_suptitle().split("\n")[0].endswith("REPEAT  ·  estimated from 256 masks")


def test_a_panel_of_relax_has_its_own_scales_and_no_verdict(encoder, image):
    explanation = rx.Relax(masks=15)(encoder, image, seed=0)
    titles = [image.axes.get_title() for image in titled_images(figures.panel(explanation))]
    assert titles == ["photo", "importance  R", "uncertainty  U", "importance where U ≤ median"]
