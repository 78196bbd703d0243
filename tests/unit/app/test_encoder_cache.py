"""The cache of encoders, and the loading of an encoder in a process of its own."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import loads
import pytest
import torch
from serving import until

import repeat_xai as rx
from repeat_xai.app import encoder_cache, encoder_process
from repeat_xai.app.encoder_cache import EncoderCache
from repeat_xai.app.encoder_process import load_in_process
from repeat_xai.encoders.torch_state import GENERATOR_LOCK
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.experiments.settings import EncoderSpec

SMALL = EncoderSpec(name="torchvision:squeezenet1_1", weights="random", size=64)


class GaveUpError(Exception):
    pass


@pytest.fixture
def loaded_names(monkeypatch, encoder):
    names = []
    monkeypatch.setattr(encoder_cache, "load_in_process", lambda spec, *_: names.append(spec.name) or encoder)
    return names


def keep_waiting():
    """Check a job that was not cancelled."""


def give_up():
    raise GaveUpError


def test_all_jobs_share_one_encoder(loaded_names):
    cache = EncoderCache()
    with ThreadPoolExecutor(8) as threads:
        cached = list(threads.map(lambda _: cache.get(EncoderSpec(name="a"), keep_waiting), range(8)))
    assert len({id(encoder) for encoder in cached}) == 1
    assert loaded_names == ["a"]


def test_the_least_recently_used_encoder_is_dropped(loaded_names):
    cache = EncoderCache(capacity=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        cache.get(EncoderSpec(name=name), keep_waiting)
    assert loaded_names == ["a", "b", "c", "b"]


def test_another_size_or_other_weights_are_another_encoder(loaded_names):
    cache = EncoderCache()
    for spec in (EncoderSpec(name="a"), EncoderSpec(name="a", size=8), EncoderSpec(name="a", weights="random")):
        cache.get(spec, keep_waiting)
    assert loaded_names == ["a", "a", "a"]


def test_loading_one_encoder_does_not_delay_another(monkeypatch, encoder):
    released = threading.Event()

    def load(spec, *_):
        if spec.name == "slow":
            released.wait()
        return encoder

    monkeypatch.setattr(encoder_cache, "load_in_process", load)
    cache = EncoderCache()
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(cache.get, EncoderSpec(name="slow"), keep_waiting)
        assert cache.get(EncoderSpec(name="quick"), keep_waiting).encoder is encoder
        with pytest.raises(GaveUpError):  # another job that waits for the same encoder can give up too
            cache.get(EncoderSpec(name="slow"), give_up)
        assert not slow.done()
        released.set()
        assert slow.result(timeout=5).encoder is encoder


@pytest.mark.slow
def test_an_encoder_that_cannot_be_loaded_is_not_cached():
    cache = EncoderCache()
    with pytest.raises(ConfigurationError, match="unknown encoder"):
        cache.get(EncoderSpec(name="torchvision:nothing"), keep_waiting)
    assert cache._find(EncoderSpec(name="torchvision:nothing")) is None


@pytest.mark.slow
def test_an_encoder_loaded_in_a_process_is_the_same_and_leaves_random_numbers_alone():
    with GENERATOR_LOCK, torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        encoder = load_in_process(SMALL, "cpu", keep_waiting)
        drawn = torch.rand(1)
        torch.manual_seed(5)
        assert torch.equal(drawn, torch.rand(1))
    expected = rx.load_encoder(SMALL.name, weights="random", size=64, device="cpu")
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(encoder(images), expected(images))
    assert (encoder.name, encoder.weights, encoder.pool, encoder.preprocessing) == (
        expected.name,
        expected.weights,
        expected.pool,
        expected.preprocessing,
    )


@pytest.mark.slow
@pytest.mark.parametrize("load", [loads.endless, loads.unwrapping_for_ever])
def test_loading_that_never_ends_is_ended_with_its_process(load, monkeypatch, tmp_path):
    content = {}
    content["state_dict"] = content
    torch.save(content, tmp_path / "w.pt")
    monkeypatch.setattr(encoder_process, "_load", load)
    processes = []
    start_process = encoder_process.SPAWNING.Process
    monkeypatch.setattr(encoder_process, "SPAWNING", RecordingContext(processes, start_process))
    deadline = time.monotonic() + 3
    with pytest.raises(GaveUpError):
        load_in_process(
            replace(SMALL, weights=str(tmp_path / "w.pt")), "cpu", lambda: deadline < time.monotonic() and give_up()
        )
    assert until(lambda: not processes[0].is_alive())


@pytest.mark.slow
def test_a_process_that_dies_while_loading_is_reported(monkeypatch):
    monkeypatch.setattr(encoder_process, "_load", loads.killed)
    with pytest.raises(EncoderError, match="SIGKILL"):
        load_in_process(SMALL, "cpu", keep_waiting)


class RecordingContext:
    """A multiprocessing context that records the processes it creates."""

    Pipe = staticmethod(encoder_process.SPAWNING.Pipe)

    def __init__(self, processes, start_process):
        self.processes, self.start_process = processes, start_process

    def Process(self, **options):
        self.processes.append(self.start_process(**options))
        return self.processes[-1]
