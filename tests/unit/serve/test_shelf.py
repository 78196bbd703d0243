"""Encoders are loaded once, shared, and make room for each other."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from repeat_xai.errors import EncoderError
from repeat_xai.experiment.setting import Network
from repeat_xai.importance.labelfree import ALONE
from repeat_xai.serve.shelf import Shelf


@pytest.fixture
def loaded(monkeypatch, encoder):
    names = []
    monkeypatch.setattr(Network, "load", lambda self, device: names.append(self.name) or encoder)
    return names


def test_all_who_ask_share_one(loaded):
    shelf = Shelf()
    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(lambda _: shelf.take(Network(name="a")), range(8)))
    assert len({id(one) for one in found}) == 1
    assert loaded == ["a"]


def test_the_one_not_asked_for_longest_goes(loaded):
    shelf = Shelf(kept=2)
    for name in ("a", "b", "a", "c", "a", "b"):
        shelf.take(Network(name=name))
    assert loaded == ["a", "b", "c", "b"]


def test_another_size_or_other_weights_are_another_encoder(loaded):
    shelf = Shelf()
    for network in (Network(name="a"), Network(name="a", size=8), Network(name="a", weights="random")):
        shelf.take(network)
    assert loaded == ["a", "a", "a"]


def test_an_onnx_file_is_read_while_captum_draws(loaded):
    shelf = Shelf()
    with ThreadPoolExecutor(2) as crowd:
        with ALONE:
            read = crowd.submit(shelf.take, Network(name="onnx:a.onnx"))
            built = crowd.submit(shelf.take, Network(name="a"))
            assert read.result(timeout=5).encoder
            assert loaded == ["onnx:a.onnx"]
        assert built.result(timeout=5).encoder


def test_one_that_cannot_be_loaded_leaves_nothing():
    shelf = Shelf()
    for _ in range(2):
        with pytest.raises(EncoderError, match="unknown encoder"):
            shelf.take(Network(name="torchvision:nothing"))
