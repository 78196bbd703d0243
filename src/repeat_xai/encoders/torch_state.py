"""What torch keeps for the whole process, left as it was while an encoder's own code runs.

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

ALONE = threading.RLock()
"""Captum hangs hooks on the network and draws from global generators: one at a time in a process."""


def _set_default_device(device: torch.device) -> None:
    """Set the default device; None in place of the CPU, since only then torch stops looking at every call."""
    torch.set_default_device(None if device.type == "cpu" else device)


def _matmul_precision() -> str | None:
    """The precision of products; None while torch's older and newer names for it disagree, and it reads neither."""
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
"""How each setting is read, and how it is set."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put torch's settings back after the block, in which an encoder runs, and make errors of what would end more.

    Ctrl-C passes. The generators of random numbers are left to `generators_kept`: other threads use them too.
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
def generators_kept(device: torch.device) -> Iterator[None]:
    """Leave the global generators of torch, numpy and Python as they were before the block; one block at a time."""
    with ALONE, torch.random.fork_rng([device] if device.type == "cuda" else []):
        numpys, pythons = np.random.get_state(), random.getstate()
        try:
            yield
        finally:
            np.random.set_state(numpys)
            random.setstate(pythons)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's and numpy's global generators set for the block, and as they were after it; one block at a time."""
    with generators_kept(device):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        np.random.seed(seed % 2**32)
        yield
