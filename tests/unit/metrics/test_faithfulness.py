"""Deletion and insertion: how similar the code stays as the most important pixels are replaced or put in."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import METRICS, deletion, insertion
from repeat_xai.metrics.faithfulness import FaithfulnessScore


@pytest.fixture
def identity():
    """An encoder with f(x) = x, whose code is the image itself."""
    return rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Identity()).double())


def test_deletion_and_insertion_by_hand(identity):
    pixels = torch.arange(1.0, 65).view(1, 8, 8).expand(3, 8, 8)
    image = rx.load_image(pixels, identity)
    squares = torch.arange(1.0, 65, dtype=torch.float64) ** 2
    left = squares.flip(0).cumsum(0).flip(0)
    deleted = deletion(identity, image, pixels[0], steps=8)
    kept = [math.sqrt(squares[: 64 - 8 * i].sum() / squares.sum()) for i in range(9)]
    assert deleted.similarities.tolist() == pytest.approx(kept, abs=1e-9)
    inserted = insertion(identity, image, pixels[0], steps=8)
    restored = [math.sqrt(left[64 - 8 * i] / left[0]) if i else 0.0 for i in range(9)]
    assert inserted.similarities.tolist() == pytest.approx(restored, abs=1e-9)
    assert deleted.area == pytest.approx(sum((a + b) / 16 for a, b in itertools.pairwise(kept)))
    reversed_ = deletion(identity, image, -pixels[0], steps=8)
    assert reversed_.area > deleted.area


@pytest.mark.parametrize("steps", [3, 7, 20, 50])
def test_no_pixel_is_replaced_a_step_early(identity, steps):
    """After each step, the number of replaced pixels is the step's share of all pixels, rounded up."""
    image = rx.load_image(torch.ones(3, 8, 25), identity)
    importance = torch.rand(8, 25, generator=torch.Generator().manual_seed(0))
    curve = deletion(identity, image, importance, steps=steps)
    left = (200 * curve.similarities**2).round().int().tolist()  # the cosine is the root of the share left
    assert left == [200 - -(-200 * step // steps) for step in range(steps + 1)]


def test_pixels_that_tie_are_replaced_together(identity):
    image = rx.load_image(torch.rand(3, 8, 8), identity)
    curve = deletion(identity, image, torch.ones(8, 8), steps=4)
    assert curve.similarities.tolist() == pytest.approx([1, 0, 0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("fill", ["mean", "black", "blur"])
def test_an_explanation_is_better_than_its_opposite(encoder, image, fill):
    importance = rx.Relax(masks=400)(encoder, image, seed=0).importance
    right, wrong = (deletion(encoder, image, sign * importance, fill=fill).area for sign in (1, -1))
    assert right < wrong
    right, wrong = (insertion(encoder, image, sign * importance, fill=fill).area for sign in (1, -1))
    assert right > wrong


@pytest.mark.parametrize("function", [deletion, insertion])
def test_the_score_of_an_image_is_the_area_of_its_curve(function, encoder, image):
    method = rx.Relax(masks=20)
    expected = function(encoder, image, method(encoder, image, seed=2).importance, steps=5, fill="black").area
    score = replace(METRICS[function.__name__].score, steps=5, fill="black")
    assert score(method, encoder, image, seed=2) == {"importance": expected}


def test_wrong_input_of_deletion_and_insertion_is_refused(encoder, image):
    for call, message in (
        (lambda: deletion(encoder, image, torch.ones(3, 3)), "a finite map"),
        (lambda: insertion(encoder, image, torch.full((24, 20), math.nan)), "a finite map"),
        (lambda: deletion(encoder, image, torch.ones(24, 20), fill="white"), "unknown fill"),
        (lambda: FaithfulnessScore(curve="deletion", steps=0), "steps"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()
