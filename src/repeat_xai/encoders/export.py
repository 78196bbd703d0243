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

from repeat_xai.errors import lacks_memory, reason

ANSWERING = "from repeat_xai.encoders.export import answer; answer()"
LONGEST = 600.0
"""Seconds that exporting may take."""
_at_work: set[subprocess.Popen[bytes]] = set()
"""Processes that export."""


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
    """By a process that imports what can be imported here; Ctrl-C is not for it but for this one."""
    given = pickle.dumps((module, dict(probe)))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", ANSWERING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if isinstance(place, str))},
        start_new_session=True,
    ) as process:
        _at_work.add(process)
        try:
            made, said = process.communicate(given, timeout=LONGEST)
        finally:
            abandoned = process not in _at_work
            _at_work.discard(process)
            process.kill()
    if abandoned:
        raise RuntimeError("it was abandoned")
    if process.returncode < 0:
        raise RuntimeError("its process was killed, perhaps out of memory")
    if process.returncode > 0:
        raise RuntimeError(said.decode(errors="replace").strip().splitlines()[-1])
    return made


def abandon() -> None:
    """End every process that exports, for a program that ends."""
    while _at_work:
        _at_work.pop().kill()


def answer() -> None:
    """Export what comes by standard input."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as given_back:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no part of the answer
        try:
            given_back.write(_here(*pickle.load(sys.stdin.buffer)))
        except Exception as error:  # the exporter meets what it cannot do with errors of every kind
            sys.exit("out of memory" if lacks_memory(error) else reason(error.__cause__ or error))


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
