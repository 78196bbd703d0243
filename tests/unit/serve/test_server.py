"""The command that serves: what it refuses, in a line."""

import importlib.util
import socket

import pytest
from command import run_here

from repeat_xai.serve import server


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


def test_an_encoder_that_is_unknown_is_named_before_anything_is_served(monkeypatch, capsys):
    pytest.importorskip("gradio")
    options = ("--no-browser", "--port", 0, "--encoder", "torchvision:nothing")
    status, said = run_here(monkeypatch, capsys, "serve", *options)
    assert (status, said.out) == (1, "")
    assert said.err.startswith("repeat-xai: unknown encoder 'torchvision:nothing'")
