"""An encoder that gives an image different codes is noticed once, at the cost of four images that nobody counts."""

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.encoders.torch_state import generators_restored


class Counting(nn.Module):
    """Remembers how many images came at once."""

    def __init__(self, body):
        super().__init__()
        self.body, self.seen = body, []

    def forward(self, images):
        self.seen.append(len(images))
        return self.body(images)


def test_a_steady_encoder_is_tried_once_and_told_nobody(network, image):
    module = Counting(network)
    encoder = rx.load_encoder(module)
    with metering() as meter:
        for seed in range(2):
            rx.Relax(masks=9)(encoder, image, seed=seed)
    assert module.seen == [2, 2, 10, 10]
    assert meter.calls == 20


@pytest.mark.parametrize("method", [rx.Relax(masks=9), rx.Occlusion(window=8, stride=8), rx.Saliency()])
def test_dropout_that_is_always_on_is_warned_of(network, image, method):
    encoder = rx.load_encoder(nn.Sequential(network, Always()), name="mine")
    with pytest.warns(UserWarning, match=r"^mine: gives one image different codes .* switch off its dropout"):
        method(encoder, image, seed=0)


class Always(nn.Module):
    def forward(self, codes):
        return nn.functional.dropout(codes)


def test_dropout_that_is_left_on_on_purpose_is_neither_tried_nor_warned_of(network, image):
    module = Counting(nn.Sequential(network, nn.Dropout(0.5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rx.Spread(base=rx.Relax(masks=9), by=rx.McDropout(), passes=2)(rx.load_encoder(module), image, seed=0)
    assert module.seen == [10, 10]


def test_an_encoder_of_ones_own_without_a_hash_is_tried_too(image, encoder):
    class Own:
        __hash__ = None
        name, weights, pool = "own", "none", "none"
        preprocessing, device, dtype = encoder.preprocessing, encoder.device, encoder.dtype

        def __call__(self, images):
            return images.mean((2, 3)) + torch.rand(())

    with pytest.warns(UserWarning, match=r"^own: gives one image different codes"):
        rx.Relax(masks=9)(Own(), image, seed=0)


def test_every_image_fails_in_a_line_where_the_encoder_is_refused_beforehand(network, image):
    def widened(part, given, codes):
        part.width += 1
        return torch.ones(len(codes), part.width)

    module = nn.Sequential(network)
    module.width = 0
    module.register_forward_hook(widened)
    answers = list(rx.Relax(masks=9).answers(rx.load_encoder(module), [image, image], seed=0))
    assert [str(answer.result) for answer in answers] == ["Sequential: returns codes of 1 values, then of 2"] * 2


def test_generators_are_as_before_after_a_block():
    def drawn():
        return torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()

    with generators_restored(torch.device("cpu")):
        first = drawn()
    assert drawn() == first
