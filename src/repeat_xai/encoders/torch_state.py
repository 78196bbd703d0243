"""Settings and random numbers that torch keeps for the whole process, restored after an encoder's own code has run.

A module may do anything in its forward: set the default type, switch gradients off, seed the generators. Whoever
explains it must neither suffer from that nor pass it on to the rest of the program.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from repeat_xai.encoders.waiting import holding

GENERATOR_LOCK = threading.RLock()
"""Held while the global generators are in use: restoring them in one thread would rewind them in another.

Captum's methods hold it too, which register hooks on the network as well.
"""


def _set_default_device(device: torch.device) -> None:
    """Set the default device; None in place of the CPU, since only then torch stops looking at every call."""
    torch.set_default_device(None if device.type == "cpu" else device)


def _matmul_precision() -> str | None:
    """Return the precision of matrix products, or None while torch's old and new settings for it contradict each other.

    Torch then raises an error instead of reading either.
    """
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _set_matmul_precision(precision: str | None) -> None:
    if precision is not None:
        torch.set_float32_matmul_precision(precision)


SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], object]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, _set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (_matmul_precision, _set_matmul_precision),
    (partial(torch.is_autocast_enabled, "cpu"), partial(torch.set_autocast_enabled, "cpu")),
    (partial(torch.is_autocast_enabled, "cuda"), partial(torch.set_autocast_enabled, "cuda")),
)
"""For each setting the function that reads it and the function that sets it."""


@contextmanager
def settings_restored() -> Iterator[None]:
    """Restore torch's settings after the block, and turn exceptions that would end the program into a RuntimeError.

    A KeyboardInterrupt passes. The generators of random numbers are left to `generators_restored`, because other
    threads use them too.
    """
    before = [read() for read, _ in SETTINGS]
    try:
        yield
    except (SystemExit, GeneratorExit, StopIteration) as error:
        raise RuntimeError(f"it raises {type(error).__name__}") from error
    finally:
        for (read, write), value in zip(SETTINGS, before, strict=True):
            if read() != value:
                write(value)


@contextmanager
def generators_restored(device: torch.device) -> Iterator[None]:
    """Restore the global generators of torch, numpy and Python after the block; one thread at a time."""
    with holding(GENERATOR_LOCK), torch.random.fork_rng([device] if device.type == "cuda" else []):
        numpy_state, python_state = np.random.get_state(), random.getstate()
        try:
            yield
        finally:
            np.random.set_state(numpy_state)
            random.setstate(python_state)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch and numpy for the block, and restore them after it; one thread at a time.

    Only the generators of the CPU and of the device are seeded: torch.manual_seed would seed those of every GPU, which
    are not restored.
    """
    with generators_restored(device):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        np.random.seed(seed % 2**32)
        yield
