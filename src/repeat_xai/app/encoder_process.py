"""Loading of an encoder in a process of its own, which can be ended at any moment.

Loading may take long (a download, a large file) or never end, and it initialises networks from torch's one generator of
random numbers. In a process of its own it delays no other user and changes nobody's random numbers, and the job that
waits for it can be cancelled.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from repeat_xai.encoders.load_encoder import placed
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.errors import EncoderError, RepeatError, reason
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.types import Encoder

POLL_SECONDS = 0.2
"""Time between two checks whether the job that waits for the encoder was cancelled."""
# A process forked from one that has threads, or uses a GPU, may not work: it is started afresh.
SPAWNING: Any = multiprocessing.get_context("spawn")


def load_in_process(spec: EncoderSpec, device: str, check_cancelled: Callable[[], None]) -> Encoder:
    """Return the encoder. `check_cancelled` is called at intervals and ends the wait by raising an exception."""
    receiving, sending = SPAWNING.Pipe(duplex=False)
    process = SPAWNING.Process(target=_load, args=(spec, sending), daemon=True)
    process.start()
    sending.close()
    try:
        while not receiving.poll(POLL_SECONDS):
            check_cancelled()
        outcome = pickle.loads(receiving.recv_bytes())
    except EOFError:
        process.join()
        status = process.exitcode or 0
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        raise EncoderError(f"{spec}: the process that loaded it ended without a result ({how})") from None
    finally:
        process.kill()
        process.join()
        receiving.close()
    if isinstance(outcome, RepeatError):
        raise outcome
    if isinstance(outcome, TorchEncoder):
        return placed(outcome, device)
    # A session of ONNX Runtime cannot be sent between processes; that the file loads is known by now.
    return spec.load(device)


def _load(spec: EncoderSpec, sending: Connection) -> None:
    """Load an encoder in this process and send it, or the error that says why it cannot be loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the process that waits
    outcome: Encoder | RepeatError | None
    try:
        encoder = spec.load("cpu")
        outcome = encoder if isinstance(encoder, TorchEncoder) else None
    except RepeatError as error:
        outcome = error
    except Exception as error:
        outcome = EncoderError(f"{spec}: cannot be loaded ({reason(error)})")
    sending.send_bytes(pickle.dumps(outcome))
