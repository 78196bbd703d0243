"""Robustness of maps, and what becomes of the code as important pixels go."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import deletion, local_lipschitz, max_sensitivity
from repeat_xai.metrics.shaken import disturbed

SMALL = rx.Relax(masks=40)


@pytest.fixture
def told(encoder, image):
    """A method whose importance is the first channel: what happens to the image happens to the map."""
    found = SMALL(encoder, image, seed=0)

    def method(encoder, image, *, seed):
        return replace(found, importance=image.pixels[0])

    return method


def test_noise_is_as_named(image):
    normal = list(disturbed(image, noise="normal", size=0.1, draws=40, numbers="fresh", seed=0))
    uniform = list(disturbed(image, noise="uniform", size=0.2, draws=40, numbers="common", seed=0))
    away = torch.stack([other.pixels - image.pixels for other in normal])
    assert away.std() == pytest.approx(0.1, rel=0.02)
    flat = torch.stack([other.pixels - image.pixels for other in uniform])
    assert flat.std() == pytest.approx(0.2 / math.sqrt(3), rel=0.02)
    assert flat.abs().max() <= 0.2 + 1e-6
    assert len({other.photo.digest for other in normal}) == 40
    assert {other.photo.digest for other in uniform} == {image.photo.digest}


def test_the_lipschitz_estimate_is_the_largest_quotient(told, encoder, image):
    found = local_lipschitz(told, encoder, image, draws=5, seed=3)
    x = image.pixels[0].double()
    quotients = []
    for other in disturbed(image, noise="normal", size=0.1, draws=5, numbers="fresh", seed=3):
        y = other.pixels[0].double()
        change = (x / x.abs().max() - y / y.abs().max()).norm()
        quotients.append((change / (other.pixels.double() - image.pixels.double()).norm()).item())
    assert found == pytest.approx(max(quotients), rel=1e-6)


def test_max_sensitivity_is_the_largest_share_of_change(told, encoder, image):
    found = max_sensitivity(told, encoder, image, draws=5, seed=3)
    x = image.pixels[0].double()
    shares = []
    for other in disturbed(image, noise="uniform", size=0.2, draws=5, numbers="fresh", seed=3):
        y = other.pixels[0].double()
        shares.append(((x / x.abs().max() - y / y.abs().max()).norm() / (x / x.abs().max()).norm()).item())
    assert found == pytest.approx(max(shares), rel=1e-6)


@pytest.mark.parametrize("metric", [local_lipschitz, max_sensitivity])
def test_common_numbers_leave_out_the_noise_of_masks(metric, encoder, image):
    fresh, common = (metric(SMALL, encoder, image, draws=4, numbers=kind, seed=0) for kind in ("fresh", "common"))
    assert common < fresh / 2
    assert metric(SMALL, encoder, image, draws=4, of="uncertainty", seed=0) > 0


def test_a_map_of_zeros_is_defined_or_undefined(told, encoder, image):
    def zero(encoder, image, *, seed):
        return replace(told(encoder, image, seed=seed), importance=torch.zeros(24, 20))

    assert local_lipschitz(zero, encoder, image, draws=2, seed=0) == 0
    assert math.isnan(max_sensitivity(zero, encoder, image, draws=2, seed=0))


@pytest.fixture
def seeing():
    """f(x) = x: what is left of the code is what is left of the image."""
    return rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Identity()).double())


def test_deletion_and_insertion_by_hand(seeing):
    pixels = torch.arange(1.0, 65).view(1, 8, 8).expand(3, 8, 8)
    image = rx.load_image(pixels, seeing)
    squares = torch.arange(1.0, 65, dtype=torch.float64) ** 2
    left = squares.flip(0).cumsum(0).flip(0)
    going = deletion(seeing, image, pixels[0], steps=8)
    kept = [math.sqrt(squares[: 64 - 8 * i].sum() / squares.sum()) for i in range(9)]
    assert going.similarities.tolist() == pytest.approx(kept, abs=1e-9)
    coming = deletion(seeing, image, pixels[0], steps=8, way="insertion")
    come = [math.sqrt(left[64 - 8 * i] / left[0]) if i else 0.0 for i in range(9)]
    assert coming.similarities.tolist() == pytest.approx(come, abs=1e-9)
    assert going.area == pytest.approx(sum((a + b) / 16 for a, b in itertools.pairwise(kept)))
    backwards = deletion(seeing, image, -pixels[0], steps=8)
    assert backwards.area > going.area


@pytest.mark.parametrize("steps", [3, 7, 20, 50])
def test_no_pixel_goes_before_its_time(seeing, steps):
    """After each step as many are gone as its share of all, rounded up."""
    image = rx.load_image(torch.ones(3, 8, 25), seeing)
    importance = torch.rand(8, 25, generator=torch.Generator().manual_seed(0))
    found = deletion(seeing, image, importance, steps=steps)
    left = (200 * found.similarities**2).round().int().tolist()  # the cosine is the root of the share left
    assert left == [200 - -(-200 * step // steps) for step in range(steps + 1)]


def test_pixels_that_tie_go_together(seeing):
    image = rx.load_image(torch.rand(3, 8, 8), seeing)
    found = deletion(seeing, image, torch.ones(8, 8), steps=4)
    assert found.similarities.tolist() == pytest.approx([1, 0, 0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("baseline", ["zero", "black", "blur"])
def test_a_real_explanation_is_better_than_its_opposite(encoder, image, baseline):
    importance = rx.Relax(masks=400)(encoder, image, seed=0)
    good, bad = (deletion(encoder, image, sign * importance, baseline=baseline).area for sign in (1, -1))
    assert good < bad


def test_what_cannot_be_asked_is_refused(encoder, image, told):
    for wrong, message in (
        (lambda: deletion(encoder, image, torch.ones(3, 3)), "a finite map"),
        (lambda: deletion(encoder, image, torch.full((24, 20), math.nan)), "a finite map"),
        (lambda: deletion(encoder, image, torch.ones(24, 20), baseline="white"), "unknown baseline"),
        (lambda: local_lipschitz(told, encoder, image, draws=0, seed=0), "draws must be"),
        (lambda: local_lipschitz(told, encoder, image, deviation=0.0, seed=0), "size of the noise"),
        (lambda: local_lipschitz(rx.Relax(masks=4), encoder, image, draws=1, seed=0), "no explanation"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            wrong()
