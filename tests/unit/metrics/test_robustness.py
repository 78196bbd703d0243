"""Local Lipschitz estimate and max-sensitivity: how much a map changes when the image is disturbed."""

import math
from dataclasses import replace

import pytest
import torch

import repeat_xai as rx
from repeat_xai.metrics import METRICS, local_lipschitz, max_sensitivity
from repeat_xai.metrics.robustness import RobustnessScore, disturb

SMALL = rx.Relax(masks=40)


@pytest.fixture
def method(encoder, image):
    """A method whose importance is the image's first channel, so that the map changes as the image does."""
    explanation = SMALL(encoder, image, seed=0)

    def explain(encoder, image, *, seed):
        return replace(explanation, importance=image.pixels[0])

    return explain


def test_disturbances_have_the_named_distribution(image):
    normal = list(disturb(image, distribution="normal", size=0.1, draws=40, numbers="fresh", seed=0))
    uniform = list(disturb(image, distribution="uniform", size=0.2, draws=40, numbers="common", seed=0))
    away = torch.stack([other.pixels - image.pixels for other in normal])
    assert away.std() == pytest.approx(0.1, rel=0.02)
    flat = torch.stack([other.pixels - image.pixels for other in uniform])
    assert flat.std() == pytest.approx(0.2 / math.sqrt(3), rel=0.02)
    assert flat.abs().max() <= 0.2 + 1e-6
    assert len({other.photo.digest for other in normal}) == 40
    assert {other.photo.digest for other in uniform} == {image.photo.digest}


def test_the_lipschitz_estimate_is_the_largest_quotient(method, encoder, image):
    value = local_lipschitz(method, encoder, image, draws=5, seed=3)
    x = image.pixels[0].double()
    quotients = []
    for other in disturb(image, distribution="normal", size=0.1, draws=5, numbers="fresh", seed=3):
        y = other.pixels[0].double()
        change = (x / x.abs().max() - y / y.abs().max()).norm()
        quotients.append((change / (other.pixels.double() - image.pixels.double()).norm()).item())
    assert value == pytest.approx(max(quotients), rel=1e-6)


def test_max_sensitivity_is_the_largest_share_of_change(method, encoder, image):
    value = max_sensitivity(method, encoder, image, draws=5, seed=3)
    x = image.pixels[0].double()
    shares = []
    for other in disturb(image, distribution="uniform", size=0.2, draws=5, numbers="fresh", seed=3):
        y = other.pixels[0].double()
        shares.append(((x / x.abs().max() - y / y.abs().max()).norm() / (x / x.abs().max()).norm()).item())
    assert value == pytest.approx(max(shares), rel=1e-6)


@pytest.mark.parametrize("metric", [local_lipschitz, max_sensitivity])
def test_common_numbers_remove_the_noise_of_masks(metric, encoder, image):
    fresh, common = (metric(SMALL, encoder, image, draws=4, numbers=kind, seed=0) for kind in ("fresh", "common"))
    assert common < fresh / 2
    assert metric(SMALL, encoder, image, draws=4, map_name="uncertainty", seed=0) > 0


def test_a_map_of_zeros_is_lipschitz_and_has_no_sensitivity(method, encoder, image):
    def zero(encoder, image, *, seed):
        return replace(method(encoder, image, seed=seed), importance=torch.zeros(24, 20))

    assert local_lipschitz(zero, encoder, image, draws=2, seed=0) == 0
    assert math.isnan(max_sensitivity(zero, encoder, image, draws=2, seed=0))


@pytest.mark.parametrize("function", [local_lipschitz, max_sensitivity])
@pytest.mark.parametrize("numbers", ["fresh", "common"])
def test_the_score_of_an_image_is_the_functions_value(function, numbers, encoder, image):
    score = replace(METRICS[function.__name__].score, draws=3, numbers=numbers)
    expected = function(SMALL, encoder, image, draws=3, numbers=numbers, seed=4)
    assert score(SMALL, encoder, image, seed=4) == {"importance": expected}


def test_wrong_options_of_robustness_are_refused(encoder, image, method):
    for call, message in (
        (lambda: local_lipschitz(method, encoder, image, draws=0, seed=0), "draws"),
        (lambda: local_lipschitz(method, encoder, image, deviation=0.0, seed=0), "size of the noise"),
        (lambda: local_lipschitz(lambda *_, seed: None, encoder, image, draws=1, seed=0), "not an explanation"),
        (lambda: RobustnessScore(metric="local_lipschitz", draws=0), "draws"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            call()
