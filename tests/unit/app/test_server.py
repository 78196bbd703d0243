"""Serving of the app: what is refused in a line, and how the server starts and ends."""

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


def test_without_gradio_the_message_says_how_to_install_it(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "gradio" else find(name))
    status, output = run_here(monkeypatch, capsys, "serve", "--no-browser")
    assert (status, output.out) == (2, "")
    assert output.err == "repeat-xai: the app needs Gradio: pip install 'repeat-xai[serve]'\n"


def test_a_port_that_is_in_use_is_refused(monkeypatch, capsys):
    pytest.importorskip("gradio")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, output = run_here(monkeypatch, capsys, "serve", "--no-browser", "--port", port)
    assert status == 2
    assert re.fullmatch(rf"repeat-xai: cannot serve on 127\.0\.0\.1:{port} \(.*\); choose another port\n", output.err)


def test_a_host_that_is_not_valid_is_refused(monkeypatch, capsys):
    pytest.importorskip("gradio")
    status, output = run_here(monkeypatch, capsys, "serve", "--no-browser", "--host", "a..b")
    assert status == 2
    assert re.fullmatch(r"repeat-xai: cannot serve on a\.\.b \(.*label.*\); choose another host\n", output.err)


@pytest.fixture
def interruptible():
    """Handle SIGINT as in a terminal; a process in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_event_loop():
    """Hide the event loop that Playwright may have left running in this process."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_encoders_load_ends_the_server(monkeypatch, capsys):
    pytest.importorskip("gradio")
    from repeat_xai.app import http_server

    monkeypatch.setattr(server.EncoderCache, "preload", lambda *_: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(http_server, "run_until_interrupted", lambda *_, **__: None)
    status, output = run_here(monkeypatch, capsys, "serve", "--no-browser", "--port", 0)
    assert (status, output.out, output.err) == (130, "", "repeat-xai: interrupted\n")


async def silent_app(scope, receive, send):
    """Answer no requests."""
    while scope["type"] == "lifespan":
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


@pytest.mark.usefixtures("interruptible", "no_event_loop")
def test_the_server_listens_before_it_announces_its_address_and_ends_when_interrupted(monkeypatch):
    pytest.importorskip("gradio")
    monkeypatch.setattr(server, "guarded_app", lambda *_, **__: silent_app)
    announced = []

    def announce(text):
        port = re.search(r"http://127.0.0.1:(\d+)", text)[1]
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
        announced.append(text)
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    server.serve(["torchvision:squeezenet1_1=random"], size=64, device="cpu", port=0, browser=False, announce=announce)
    assert len(announced) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_the_server_does_not_wait_for_an_export_when_it_ends(monkeypatch):
    pytest.importorskip("gradio")
    from repeat_xai.app import http_server

    monkeypatch.setattr(onnx_export, "WORKER_CODE", "import time; time.sleep(100)")
    with ThreadPoolExecutor(1) as threads:

        def interrupt_during_export(*_, **__):
            waiting.append(threads.submit(onnx_export.onnx_bytes, nn.Identity(), {"input": torch.zeros(1, 3, 8, 8)}))
            assert until(lambda: onnx_export._processes)
            raise KeyboardInterrupt

        waiting = []
        monkeypatch.setattr(server, "guarded_app", lambda *_, **__: silent_app)
        monkeypatch.setattr(http_server, "run_until_interrupted", interrupt_during_export)
        with pytest.raises(KeyboardInterrupt):
            server.serve(["torchvision:squeezenet1_1=random"], size=64, device="cpu", port=0, browser=False)
        with pytest.raises(RuntimeError, match="abandoned"):
            waiting[0].result(timeout=10)


def test_an_unknown_encoder_is_refused_before_the_app_is_served(monkeypatch, capsys):
    pytest.importorskip("gradio")
    options = ("--no-browser", "--port", 0, "--encoder", "torchvision:resnet51")
    status, output = run_here(monkeypatch, capsys, "serve", *options)
    assert (status, output.out) == (2, "")
    assert output.err.startswith("repeat-xai: unknown encoder 'torchvision:resnet51'; did you mean torchvision:resnet")
