"""The command that serves: what it refuses, in a line."""

import asyncio
import importlib.util
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from command import run_here
from serving import until
from torch import nn

from repeat_xai.app import server
from repeat_xai.encoders import onnx_export


def test_without_gradio_it_says_how_to_get_it(monkeypatch, capsys):
    found = importlib.util.find_spec
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "gradio" else found(name))
    status, said = run_here(monkeypatch, capsys, "serve", "--no-browser")
    assert (status, said.out) == (2, "")
    assert said.err == "repeat-xai: the app needs Gradio: pip install 'repeat-xai[serve]'\n"


def test_a_port_that_is_taken_is_named(monkeypatch, capsys):
    pytest.importorskip("gradio")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = run_here(monkeypatch, capsys, "serve", "--no-browser", "--port", port)
    assert status == 2
    assert said.err == (
        f"repeat-xai: cannot serve on 127.0.0.1:{port} (Address already in use); choose another --port\n"
    )


def test_a_host_that_cannot_be_one_is_named(monkeypatch, capsys):
    pytest.importorskip("gradio")
    status, said = run_here(monkeypatch, capsys, "serve", "--no-browser", "--host", "a..b")
    assert status == 2
    assert re.fullmatch(r"repeat-xai: cannot serve on a\.\.b \(.*label.*\); choose another --host\n", said.err)


@pytest.fixture
def heeding():
    """Interrupts as in a terminal: in the background they are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def unlooped():
    """No event loop, though Playwright may have left its own running in this process."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(before)


@pytest.mark.usefixtures("heeding")
def test_interrupted_while_encoders_load_it_ends(monkeypatch, capsys):
    pytest.importorskip("gradio")
    monkeypatch.setattr(server.Shelf, "load", lambda *_: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(server, "_run", lambda *_, **__: None)
    status, said = run_here(monkeypatch, capsys, "serve", "--no-browser", "--port", 0)
    assert (status, said.out, said.err) == (130, "", "repeat-xai: interrupted\n")


async def nothing(scope, receive, send):
    """An app that answers nobody."""
    while scope["type"] == "lifespan":
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


@pytest.mark.usefixtures("heeding", "unlooped")
def test_it_listens_before_it_says_so_and_ends_when_interrupted(monkeypatch):
    pytest.importorskip("gradio")
    monkeypatch.setattr(server, "guarded", lambda *_, **__: nothing)
    heard = []

    def told(words):
        port = re.search(r"http://127.0.0.1:(\d+)", words)[1]
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
        heard.append(words)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    server.serve(["torchvision:squeezenet1_1=random"], size=64, device="cpu", port=0, browser=False, told=told)
    assert len(heard) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_it_does_not_wait_for_what_is_being_exported(monkeypatch):
    pytest.importorskip("gradio")
    monkeypatch.setattr(onnx_export, "WORKER_CODE", "import time; time.sleep(100)")
    with ThreadPoolExecutor(1) as pool:

        def interrupted(*_, **__):
            waiting.append(pool.submit(onnx_export.onnx_bytes, nn.Identity(), {"input": torch.zeros(1, 3, 8, 8)}))
            assert until(lambda: onnx_export._processes)
            raise KeyboardInterrupt

        waiting = []
        monkeypatch.setattr(server, "guarded", lambda *_, **__: nothing)
        monkeypatch.setattr(server, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.serve(["torchvision:squeezenet1_1=random"], size=64, device="cpu", port=0, browser=False)
        with pytest.raises(RuntimeError, match="abandoned"):
            waiting[0].result(timeout=10)


def test_an_encoder_that_is_unknown_is_named_before_anything_is_served(monkeypatch, capsys):
    pytest.importorskip("gradio")
    options = ("--no-browser", "--port", 0, "--encoder", "torchvision:nothing")
    status, said = run_here(monkeypatch, capsys, "serve", *options)
    assert (status, said.out) == (2, "")
    assert said.err.startswith("repeat-xai: unknown encoder 'torchvision:nothing'")
