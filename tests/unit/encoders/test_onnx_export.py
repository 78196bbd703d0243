"""Networks that are exported by threads, while other threads use torch."""

import importlib
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from serving import until
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders import onnx_export
from repeat_xai.errors import lacks_memory

PROBE = {"input": torch.zeros(2, 3, 24, 20)}


def on_another_thread(task):
    """Return the result of the task on another thread, and how often this thread used torch meanwhile."""
    uses = 0
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(task)
        while not under_way.done():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(uses)
            uses += 1
    return under_way.result(), uses


@pytest.mark.slow
def test_threads_export_while_others_use_torch(network):
    before = sys.stdout, logging.root.manager.disable
    encoders = [rx.load_encoder(network) for _ in range(2)]
    image = rx.load_image(torch.rand(3, 24, 20), encoders[0])

    def explained():
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda e: rx.Relax(masks=600)(e, image, seed=0), encoders))

    explanations, uses = on_another_thread(explained)
    assert uses > 10
    assert [explanation.provenance["ran"]["runtime"] for explanation in explanations] == ["onnxruntime"] * 2
    assert torch.equal(explanations[0].importance, explanations[1].importance)
    assert (sys.stdout, logging.root.manager.disable) == before


@pytest.mark.slow
def test_the_process_imports_a_network_from_its_file_and_lets_it_print(tmp_path, monkeypatch):
    """Files in the working directory are not imported, whatever their names."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/onnx.py").write_text("raise SystemExit('the wrong file')")
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "talkative.py").write_text(
        "print('imported')\nimport torch\nclass Net(torch.nn.Conv2d):\n"
        "    def __setstate__(self, state):\n        print('made')\n        super().__setstate__(state)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("talkative").Net(3, 4, 5).eval()
    made, _ = on_another_thread(lambda: onnx_export.onnx_bytes(module, PROBE))
    assert made == onnx_export.onnx_bytes(module, PROBE)


class Hooked(nn.Identity):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "words"), [(nn.Unfold(99), "spatial size"), (Hooked(), "pickle")])
def test_an_error_in_the_process_is_one_line(module, words):
    with ThreadPoolExecutor(1) as pool, pytest.raises(Exception, match=words) as caught:
        pool.submit(onnx_export.onnx_bytes, module, PROBE).result()
    assert "\n" not in str(caught.value)


def test_a_module_that_cannot_be_pickled_is_run_by_torch():
    encoder = rx.load_encoder(nn.Sequential(Hooked(), nn.AvgPool2d(4), nn.Flatten()))
    image = rx.load_image(torch.rand(3, 24, 20), encoder)
    explanation, _ = on_another_thread(lambda: rx.Relax(masks=600)(encoder, image, seed=0))
    assert explanation.provenance["ran"]["runtime"] == "torch"


@pytest.mark.slow
@pytest.mark.parametrize("lack", ["raise MemoryError", "import os; os.kill(os.getpid(), 9)"])
def test_too_little_memory_in_the_process_is_recognised(network, monkeypatch, lack):
    program = f"from repeat_xai.encoders import onnx_export as room\ndef lack(*_): {lack}\nroom._export = lack\n"
    lacking = program + "room.export_from_stdin()"
    monkeypatch.setattr(onnx_export, "WORKER_CODE", lacking)
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError) as caught:
        pool.submit(onnx_export.onnx_bytes, network, PROBE).result()
    assert lacks_memory(caught.value)


def test_an_export_that_is_abandoned_or_takes_too_long_is_an_error(network, monkeypatch):
    monkeypatch.setattr(onnx_export, "WORKER_CODE", "import time; time.sleep(100)")
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="abandoned") as caught:
        waiting = pool.submit(onnx_export.onnx_bytes, network, PROBE)
        assert until(lambda: onnx_export._processes)
        onnx_export.abandon()
        waiting.result()
    assert not lacks_memory(caught.value)
    monkeypatch.setattr(onnx_export, "MAX_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as pool, pytest.raises(subprocess.TimeoutExpired):
        pool.submit(onnx_export.onnx_bytes, network, PROBE).result()
    assert not onnx_export._processes


def test_ctrl_c_does_not_reach_the_process(network, monkeypatch):
    monkeypatch.setattr(onnx_export, "WORKER_CODE", "import os, sys; sys.exit(f'group {os.getpgid(0)}')")
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match=r"group \d+") as caught:
        pool.submit(onnx_export.onnx_bytes, network, PROBE).result()
    assert str(caught.value) != f"group {os.getpgid(0)}"
