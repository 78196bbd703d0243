"""ONNX files of every kind are explained as the healthy network is, or refused in a line before a file is opened."""

import warnings

import numpy as np
import pytest
import torch
from hostile.apart import called_apart
from hostile.onnx_cases import EXTERNAL, explained, network, saved
from hostile.onnx_networks import BOMBS, ENDS, FILES, INSIDE, UNSTEADY
from hostile.torch_settings import unchanged
from hostile.verdicts import called

import repeat_xai as rx

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return explained(saved(network(), tmp_path_factory.mktemp("healthy")))


@pytest.mark.parametrize("case", [*EXTERNAL, *FILES, *ENDS, *INSIDE], ids=str)
def test_an_onnx_file(case, healthy, judge, tmp_path):
    path, maps = case.make(tmp_path), []
    with unchanged():
        verdict = called(lambda: maps.append(explained(path)), seconds=20)
    judge("onnx", verdict, case)
    if case.expected == "right":
        torch.testing.assert_close(maps[0], healthy, atol=1e-6, rtol=0)


@pytest.mark.hostile
@pytest.mark.parametrize("case", BOMBS, ids=str)
def test_an_onnx_file_that_would_take_the_memory(case, judge, tmp_path):
    judge("onnx", called_apart(explained, case.make(tmp_path)), case)


@pytest.mark.parametrize("case", UNSTEADY, ids=str)
def test_an_onnx_file_whose_codes_are_not_steady_is_explained_with_a_warning(case, judge, tmp_path):
    path, maps = case.make(tmp_path), []
    with pytest.warns(UserWarning, match=r"^onnx:net.onnx: gives one image different codes"):
        judge("onnx", called(lambda: maps.append(explained(path))), case)
    assert np.isfinite(maps[0].numpy()).all()


def test_what_a_network_may_not_open_is_not_opened(monkeypatch, tmp_path):
    """Neither it nor ONNX Runtime is asked: no session is made of a network that was refused."""
    from repeat_xai.encoders import onnx

    monkeypatch.setattr(onnx, "open_session", lambda *_: pytest.fail("a session was made"))
    for case in EXTERNAL[:9]:
        folder = tmp_path / str(EXTERNAL.index(case))
        folder.mkdir()
        with pytest.raises(rx.RepeatError, match="no regular file"), warnings.catch_warnings():
            explained(case.make(folder))
