"""Torch modules run by ONNX Runtime: exported here or in a process of their own, and compared with torch.

On a CPU ONNX Runtime runs most networks several times faster than torch does.
"""

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
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from repeat_xai.encoders.onnx import open_session, run_session
from repeat_xai.encoders.torch_encoder import evaluating
from repeat_xai.errors import EncoderError, lacks_memory, reason

MAX_DIFFERENCE = 1e-4
"""How far an exported network's codes may be from torch's, as a share of the largest value."""
WORKER_CODE = "from repeat_xai.encoders.onnx_export import export_from_stdin; export_from_stdin()"
"""Program of the process that exports."""
MAX_SECONDS = 600.0
"""Time that exporting may take in a process of its own."""
_processes: set[subprocess.Popen[bytes]] = set()
"""Processes that are exporting now."""


def exported(module: nn.Module, probe: Mapping[str, Tensor]) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """Return a function that runs the module by ONNX Runtime, for inputs of the shapes and types of the probe.

    An EncoderError is raised where it cannot be exported or does not give the same codes.
    """
    try:
        with torch.no_grad(), evaluating(module):
            codes = module(**probe)
            if not isinstance(codes, Tensor):
                raise TypeError(f"{type(codes).__name__} is no tensor")
            session = open_session(onnx_bytes(module, probe))
        by_onnx = run_session(session, probe)
    except Exception as error:  # the exporter meets what it cannot do with errors of every kind
        if lacks_memory(error):
            raise
        raise EncoderError(f"cannot be exported to ONNX Runtime ({reason(error.__cause__ or error)})") from error
    if by_onnx.shape != codes.shape or not (by_onnx - codes).abs().max() <= MAX_DIFFERENCE * codes.abs().max():
        raise EncoderError("gives other codes when exported to ONNX Runtime")
    return partial(run_session, session)


def onnx_bytes(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    """Return the module as an ONNX file's content.

    While torch exports, whatever else in the process uses torch may fail. So only the main thread exports in this
    process; other threads, which work beside somebody, leave it to a process of its own.
    """
    if threading.current_thread() is threading.main_thread():
        return _export(module, probe)
    return _export_in_process(module, probe)


def _export(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    with torch.no_grad(), _quiet_exporter():
        program = torch.onnx.export(module, kwargs=dict(probe), dynamo=True, verbose=False)
        assert program is not None
        content: bytes = program.model_proto.SerializeToString()
    return content


def _export_in_process(module: nn.Module, probe: Mapping[str, Tensor]) -> bytes:
    """Export in a process that can import what this one can, and that Ctrl-C does not reach."""
    request = pickle.dumps((module, dict(probe)))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", WORKER_CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if isinstance(place, str))},
        start_new_session=True,
    ) as process:
        _processes.add(process)
        try:
            content, errors = process.communicate(request, timeout=MAX_SECONDS)
        finally:
            abandoned = process not in _processes
            _processes.discard(process)
            process.kill()
    if abandoned:
        raise RuntimeError("it was abandoned")
    if process.returncode < 0:
        raise RuntimeError("its process was killed, perhaps out of memory")
    if process.returncode > 0:
        raise RuntimeError(errors.decode(errors="replace").strip().splitlines()[-1])
    return content


def abandon() -> None:
    """End every process that exports, because the program ends."""
    while _processes:
        _processes.pop().kill()


def export_from_stdin() -> None:
    """Export the pickled module on standard input, and write the ONNX file's content to standard output."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print must not end up in the content
        try:
            output.write(_export(*pickle.load(sys.stdin.buffer)))
        except Exception as error:  # the exporter meets what it cannot do with errors of every kind
            sys.exit("out of memory" if lacks_memory(error) else reason(error.__cause__ or error))


@contextlib.contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter for the block: what it logs, warns of and prints is for its own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    discarded = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(discarded), contextlib.redirect_stderr(discarded):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
