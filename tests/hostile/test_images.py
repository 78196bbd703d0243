"""Tests that `load_image` loads hostile images and shows the right picture, or refuses them in one line."""

import pytest
import torch
from hostile.image_cases import expect_shown
from hostile.image_sources import MEMORY, PLACES
from hostile.jpeg_cases import JPEGS
from hostile.other_cases import BOXES, MAPS, WEBPS
from hostile.png_cases import PNGS
from hostile.tiff_cases import BITMAPS, GIFS, TIFFS
from hostile.verdicts import verdict_of_call

import repeat_xai as rx
from repeat_xai.types import Preprocessing

CASES = [*PNGS, *JPEGS, *TIFFS, *BITMAPS, *GIFS, *MAPS, *WEBPS, *BOXES, *MEMORY, *PLACES]


class UncalledEncoder:
    """An encoder that is never called, with inputs of 32×32 pixels that are not normalised."""

    name, weights, pool = "looker", "none", "none"
    device, dtype = torch.device("cpu"), torch.float32
    preprocessing = Preprocessing(size=(32, 32), resize=(32, 32), mean=(0.0,) * 3, std=(1.0,) * 3)

    def __call__(self, images):
        raise AssertionError


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_image_is_loaded_or_refused_in_one_line(case, judge, tmp_path, capfd):
    source = case.make(tmp_path)
    images = []
    verdict = verdict_of_call(lambda: images.append(rx.load_image(source, UncalledEncoder())))
    judge("images", verdict, case)
    if case.expected == "right":
        expect_shown(images[0], case)
    assert capfd.readouterr() == ("", ""), "libraries write nothing of their own"
