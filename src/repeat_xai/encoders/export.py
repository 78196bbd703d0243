"""A torch module → a model for ONNX Runtime, here or in a process of its own."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from repeat_xai.errors import reason

ANSWERING = "from repeat_xai.encoders.export import answer; answer()"


def model(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    """The module for inputs such as the probe.

    While torch exports, whatever else in the process uses torch may fail: only the main thread exports here.
    """
    main = threading.current_thread() is threading.main_thread()
    return _here(module, probe) if main else _elsewhere(module, probe)


def _here(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    with torch.no_grad(), _quietly():
        program = torch.onnx.export(module, kwargs=dict(probe), dynamo=True, verbose=False)
        assert program is not None
        made: bytes = program.model_proto.SerializeToString()
    return made


def _elsewhere(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    """By a process that Ctrl-C does not reach: it is for this one."""
    done = subprocess.run(
        [sys.executable, "-c", ANSWERING],
        input=pickle.dumps((module, dict(probe))),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(said[-1] if said else f"its process ended with {done.returncode}")
    return done.stdout


def answer() -> None:
    """Export what comes by standard input."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as given_back:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no part of the answer
        try:
            given_back.write(_here(*pickle.load(sys.stdin.buffer)))
        except Exception as error:  # the exporter meets what it cannot do with errors of every kind
            sys.exit(reason(error.__cause__ or error))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """The exporter speaks to its own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    unheard = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
