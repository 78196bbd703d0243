"""Files of weights of every kind are loaded as they should be, or refused in a line before they run or fill a thing."""

from pathlib import Path

import pytest
import torch
from hostile.apart import called_apart
from hostile.torch_settings import unchanged
from hostile.verdicts import called, commanded
from hostile.weight_cases import CASES, NAME, NOT_FINITE, PLACES, SIDE, explained, saved

import repeat_xai as rx

NEVER = Path("/tmp/never")
"""What no weights may make."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return explained(saved()(tmp_path_factory.mktemp("healthy")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_of_weights(case, healthy, judge, tmp_path):
    path, codes = case.make(tmp_path), []
    with unchanged():
        verdict = called(lambda: codes.append(explained(path)), seconds=20)
    judge("weights", verdict, case)
    assert not NEVER.exists()
    if case.expected == "right":
        assert torch.equal(codes[0], healthy)


@pytest.mark.parametrize("case", NOT_FINITE, ids=str)
def test_weights_that_are_no_numbers_are_refused_when_they_are_used(case, judge, tmp_path):
    encoder = rx.load_encoder(NAME, weights=case.make(tmp_path), size=SIDE)
    image = rx.load_image(torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(0)), encoder)
    judge("weights", called(lambda: rx.Relax(masks=9)(encoder, image, seed=0)), case)


@pytest.mark.hostile
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_of_weights_in_little_memory(case, judge, tmp_path):
    judge("weights", called_apart(explained, case.make(tmp_path)), case)


@pytest.mark.hostile
@pytest.mark.parametrize("case", [*PLACES, *(case for case in CASES if "itself" in case.name)], ids=str)
def test_a_file_of_weights_by_command(case, judge, tmp_path):
    from small_work import pictures

    path = case.make(tmp_path)
    photos = pictures(tmp_path / "photos", 1)
    options = ("--encoder", NAME, "--weights", path, "--size", SIDE, "--masks", 9, "--out", tmp_path / "out")
    judge("weights", commanded("explain", photos, *options), case)
