"""An encoder loaded by a process of its own, which can be ended at any moment and disturbs nobody.

Loading may take long (a download, a large file) or never end, and fills networks from torch's one generator of random
numbers. In a process of its own neither makes anyone else wait, and who waits for it can give up.
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
from repeat_xai.experiments.settings import Network
from repeat_xai.types import Encoder

PAUSE = 0.2
"""Seconds between two looks whether anybody still waits for the encoder."""
CONTEXT: Any = multiprocessing.get_context("spawn")
"""A process forked from one with threads, or with a GPU in use, may not work."""


def load_apart(network: Network, device: str, still_wanted: Callable[[], None]) -> Encoder:
    """Return the encoder; `still_wanted` is called now and then, and gives up by raising an exception."""
    receiving, sending = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_load, args=(network, sending), daemon=True)
    process.start()
    sending.close()
    try:
        while not receiving.poll(PAUSE):
            still_wanted()
        answer = pickle.loads(receiving.recv_bytes())
    except EOFError:
        process.join()
        code = process.exitcode or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        raise EncoderError(f"{network}: its loading ended with nothing ({how})") from None
    finally:
        process.kill()
        process.join()
        receiving.close()
    if isinstance(answer, RepeatError):
        raise answer
    if isinstance(answer, TorchEncoder):
        return placed(answer, device)
    return network.load(device)  # ONNX Runtime hands over no session; the file is known to load by now


def _load(network: Network, sending: Connection) -> None:
    """Load an encoder in this process, and send it, or the reason why it cannot be loaded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    answer: Encoder | RepeatError | None
    try:
        encoder = network.load("cpu")
        answer = encoder if isinstance(encoder, TorchEncoder) else None
    except RepeatError as error:
        answer = error
    except Exception as error:
        answer = EncoderError(f"{network}: cannot be loaded ({reason(error)})")
    sending.send_bytes(pickle.dumps(answer))
