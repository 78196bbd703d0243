"""Encoders are loaded once, shared, and make room for each other; whoever waits for one can give up."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import loads
import pytest
import torch
from serving import until

import repeat_xai as rx
from repeat_xai.app import encoder_cache as shelf
from repeat_xai.app import encoder_process as loading
from repeat_xai.app.encoder_cache import Shelf
from repeat_xai.app.encoder_process import load_apart
from repeat_xai.encoders.torch_state import GENERATOR_LOCK
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.experiments.settings import Network

SMALL = Network(name="torchvision:squeezenet1_1", weights="random", size=64)


class GaveUpError(Exception):
    pass


@pytest.fixture
def loaded(monkeypatch, encoder):
    names = []
    monkeypatch.setattr(shelf, "load_apart", lambda network, *_: names.append(network.name) or encoder)
    return names


def wanted():
    """Somebody still waits."""


def given_up():
    raise GaveUpError


def test_all_who_ask_share_one(loaded):
    encoders = Shelf()
    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(lambda _: encoders.take(Network(name="a"), wanted), range(8)))
    assert len({id(one) for one in found}) == 1
    assert loaded == ["a"]


def test_the_one_not_asked_for_longest_goes(loaded):
    encoders = Shelf(kept=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        encoders.take(Network(name=name), wanted)
    assert loaded == ["a", "b", "c", "b"]


def test_another_size_or_other_weights_are_another_encoder(loaded):
    encoders = Shelf()
    for network in (Network(name="a"), Network(name="a", size=8), Network(name="a", weights="random")):
        encoders.take(network, wanted)
    assert loaded == ["a", "a", "a"]


def test_loading_one_encoder_keeps_nobody_from_another(monkeypatch, encoder):
    free = threading.Event()
    monkeypatch.setattr(shelf, "load_apart", lambda network, *_: (network.name == "slow" and free.wait(), encoder)[1])
    encoders = Shelf()
    with ThreadPoolExecutor(2) as crowd:
        slow = crowd.submit(encoders.take, Network(name="slow"), wanted)
        assert encoders.take(Network(name="quick"), wanted).encoder is encoder
        with pytest.raises(GaveUpError):  # who waits for the same encoder can give up too
            encoders.take(Network(name="slow"), given_up)
        assert not slow.done()
        free.set()
        assert slow.result(timeout=5).encoder is encoder


def test_one_that_cannot_be_loaded_leaves_nothing():
    encoders = Shelf()
    with pytest.raises(ConfigurationError, match="unknown encoder"):
        encoders.take(Network(name="torchvision:nothing"), wanted)
    assert encoders._known(Network(name="torchvision:nothing")) is None


def test_an_encoder_loaded_apart_is_the_same_and_draws_nothing_here():
    with GENERATOR_LOCK, torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        found = load_apart(SMALL, "cpu", wanted)
        drawn = torch.rand(1)
        torch.manual_seed(5)
        assert torch.equal(drawn, torch.rand(1))
    own = rx.load_encoder(SMALL.name, weights="random", size=64, device="cpu")
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(found(images), own(images))
    assert (found.name, found.weights, found.pool, found.preprocessing) == (
        own.name,
        own.weights,
        own.pool,
        own.preprocessing,
    )


@pytest.mark.parametrize("load", [loads.endless, loads.unwrapping_for_ever])
def test_loading_that_never_ends_is_given_up_with_its_process(load, monkeypatch, tmp_path):
    content = {}
    content["state_dict"] = content
    torch.save(content, tmp_path / "w.pt")
    monkeypatch.setattr(loading, "_load", load)
    made = []
    process = loading.CONTEXT.Process
    monkeypatch.setattr(loading, "CONTEXT", Recording(made, process))
    until_then = time.monotonic() + 3
    with pytest.raises(GaveUpError):
        load_apart(
            replace(SMALL, weights=str(tmp_path / "w.pt")), "cpu", lambda: until_then < time.monotonic() and given_up()
        )
    assert until(lambda: not made[0].is_alive())


def test_a_process_that_dies_while_loading_is_said(monkeypatch):
    monkeypatch.setattr(loading, "_load", loads.killed)
    with pytest.raises(EncoderError, match=r"its loading ended with nothing \(killed by SIGKILL\)"):
        load_apart(SMALL, "cpu", wanted)


class Recording:
    """A context of processes that remembers those it has made."""

    Pipe = staticmethod(loading.CONTEXT.Pipe)

    def __init__(self, made, process):
        self.made, self.process = made, process

    def Process(self, **options):
        self.made.append(self.process(**options))
        return self.made[-1]
