"""An encoder that gives one image different codes brings a warning, found out by four calls that are not counted."""

import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hostile.onnx_cases import SIDE, saved
from hostile.onnx_cases import network as network_of_means
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders import onnx
from repeat_xai.encoders.calls import metering
from repeat_xai.encoders.onnx import run_session
from repeat_xai.encoders.torch_state import GENERATOR_LOCK, generators_restored
from repeat_xai.errors import EncoderError
from repeat_xai.types import Task


class Counting(nn.Module):
    """Remembers the sizes of its batches."""

    def __init__(self, body):
        super().__init__()
        self.body, self.batches = body, []

    def forward(self, images):
        self.batches.append(len(images))
        return self.body(images)


def test_a_steady_encoder_is_tried_once_without_a_warning(network, image):
    module = Counting(network)
    encoder = rx.load_encoder(module)
    with metering() as meter:
        for seed in range(2):
            rx.Relax(masks=9)(encoder, image, seed=seed)
    assert module.batches == [2, 2, 10, 10]
    assert meter.calls == 20


@pytest.mark.parametrize("method", [rx.Relax(masks=9), rx.Occlusion(window=8, stride=8), rx.Saliency()])
def test_dropout_that_is_always_on_brings_a_warning(network, image, method):
    encoder = rx.load_encoder(nn.Sequential(network, AlwaysDropping()), name="mine")
    with pytest.warns(UserWarning, match=r"^mine: gives one image different codes"):
        method(encoder, image, seed=0)


class AlwaysDropping(nn.Module):
    def forward(self, codes):
        return nn.functional.dropout(codes)


def test_dropout_that_is_on_on_purpose_is_neither_tried_nor_brings_a_warning(network, image):
    module = Counting(nn.Sequential(network, nn.Dropout(0.5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rx.Spread(base=rx.Relax(masks=9), by=rx.McDropout(), passes=2)(rx.load_encoder(module), image, seed=0)
    assert module.batches == [10, 10]


def test_a_users_encoder_without_a_hash_is_tried_too(image, encoder):
    class Own:
        __hash__ = None
        name, weights, pool = "own", "none", "none"
        preprocessing, device, dtype = encoder.preprocessing, encoder.device, encoder.dtype

        def __call__(self, images):
            return images.mean((2, 3)) + torch.rand(())

    with pytest.warns(UserWarning, match=r"^own: gives one image different codes"):
        rx.Relax(masks=9)(Own(), image, seed=0)


def test_every_image_is_answered_with_the_error_where_the_encoder_is_refused_beforehand(network, image):
    def widen(part, given, codes):
        part.width += 1
        return torch.ones(len(codes), part.width)

    module = nn.Sequential(network)
    module.width = 0
    module.register_forward_hook(widen)
    tasks = [Task(image), Task(None, "empty"), Task(image)]
    answers = list(rx.Relax(masks=9).answers(rx.load_encoder(module), tasks, seed=0))
    assert [answer.task for answer in answers] == tasks
    assert [type(answer.result) for answer in answers] == [EncoderError, type(None), EncoderError]
    assert str(answers[2].result) == "Sequential: returns codes of 1 values, then of 2"


def test_random_generators_are_put_back_after_the_block():
    def random_numbers():
        return torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()

    with generators_restored(torch.device("cpu")):
        first = random_numbers()
    assert random_numbers() == first


@pytest.mark.parametrize("method", [rx.Relax(masks=9), rx.Spread(base=rx.Occlusion(window=16, stride=16), passes=2)])
def test_other_threads_may_draw_random_numbers_while_an_onnx_network_is_tried(method, monkeypatch, tmp_path):
    """A network may loop without end, and the lock of the generators would let all other threads wait for it."""
    encoder = rx.load_encoder(f"onnx:{saved(network_of_means(), tmp_path)}", size=SIDE)
    pixels = torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    lock_was_free = []

    def run_and_try_lock(*arguments):
        with ThreadPoolExecutor(1) as thread:
            lock_was_free.append(thread.submit(lambda: GENERATOR_LOCK.acquire(blocking=False)).result())
            if lock_was_free[-1]:
                thread.submit(GENERATOR_LOCK.release).result()
        return run_session(*arguments)

    monkeypatch.setattr(onnx, "run_session", run_and_try_lock)
    method(encoder, rx.load_image(pixels, encoder), seed=0)
    assert lock_was_free[:2] == [True, True]
