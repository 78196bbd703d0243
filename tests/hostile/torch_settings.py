"""What torch and numpy keep for the whole process, to be compared before and after a hostile call.

Python's own random numbers are not among it: while testing, the checks of types draw from them.
"""

import contextlib
from typing import NamedTuple

import numpy as np
import torch


class Settings(NamedTuple):
    """Everything that a call of the package must leave as it was."""

    dtype: torch.dtype
    device: torch.device
    gradients: bool
    inference: bool
    threads: int
    determinism: int
    precision: str
    autocast: bool
    anomalies: bool
    torchs: tuple
    numpys: tuple

    @staticmethod
    def now():
        """Read all of it."""
        kind, keys, *place = np.random.get_state()
        return Settings(
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.get_num_threads(),
            torch.get_deterministic_debug_mode(),
            torch.get_float32_matmul_precision(),
            torch.is_autocast_enabled("cpu"),
            torch.is_anomaly_enabled(),
            tuple(torch.get_rng_state().tolist()),
            (kind, tuple(keys), *place),
        )


def put_back(settings):
    """Set what a fault has left changed, so that one failure does not cause the next."""
    torch.set_default_dtype(settings.dtype)
    torch.set_default_device(None)
    torch.set_grad_enabled(settings.gradients)
    torch.set_num_threads(settings.threads)
    torch.set_deterministic_debug_mode(settings.determinism)
    torch.set_float32_matmul_precision(settings.precision)
    torch.set_autocast_enabled("cpu", settings.autocast)
    torch.set_anomaly_enabled(settings.anomalies)


@contextlib.contextmanager
def unchanged():
    """Check that the block leaves the settings and all generators of random numbers as they were."""
    before = Settings.now()
    try:
        yield
        after = Settings.now()
        changed = [name for name in Settings._fields if getattr(after, name) != getattr(before, name)]
        assert changed == []
    finally:
        put_back(before)
