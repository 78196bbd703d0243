"""Tests that files of weights are loaded, or refused in one line before they run code or exhaust memory."""

from pathlib import Path

import pytest
import torch
from hostile.apart import verdict_of_call_in_process
from hostile.torch_settings import unchanged
from hostile.verdicts import verdict_of_call, verdict_of_command
from hostile.weight_cases import CASES, NAME, NOT_FINITE, PLACES, SIDE, explained, saved

import repeat_xai as rx

NEVER = Path("/tmp/never")
"""A file that would be created by code in a file of weights."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return explained(saved()(tmp_path_factory.mktemp("healthy")))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_of_weights_is_loaded_or_refused(case, healthy, judge, tmp_path):
    path, codes = case.make(tmp_path), []
    with unchanged():
        verdict = verdict_of_call(lambda: codes.append(explained(path)), seconds=20)
    judge("weights", verdict, case)
    assert not NEVER.exists()
    if case.expected == "right":
        assert torch.equal(codes[0], healthy)


@pytest.mark.parametrize("case", NOT_FINITE, ids=str)
def test_weights_that_are_not_finite_are_refused_when_they_are_used(case, judge, tmp_path):
    encoder = rx.load_encoder(NAME, weights=case.make(tmp_path), size=SIDE)
    image = rx.load_image(torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(0)), encoder)
    judge("weights", verdict_of_call(lambda: rx.Relax(masks=9)(encoder, image, seed=0)), case)


@pytest.mark.hostile
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_of_weights_is_loaded_or_refused_in_little_memory(case, judge, tmp_path):
    judge("weights", verdict_of_call_in_process(explained, case.make(tmp_path)), case)


@pytest.mark.hostile
@pytest.mark.parametrize("case", [*PLACES, *(case for case in CASES if "itself" in case.name)], ids=str)
def test_the_command_loads_or_refuses_a_file_of_weights(case, judge, tmp_path):
    from small_work import pictures

    path = case.make(tmp_path)
    photos = pictures(tmp_path / "photos", 1)
    options = ("--encoder", NAME, "--weights", path, "--size", SIDE, "--masks", 9, "--out", tmp_path / "out")
    judge("weights", verdict_of_command("explain", photos, *options), case)
