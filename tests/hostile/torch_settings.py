"""Settings of torch and numpy for the whole process, which a hostile call must not change.

Python's own random numbers are not compared, because the type checks that run while testing draw from them.
"""

import contextlib
from typing import NamedTuple

import numpy as np
import torch


class Settings(NamedTuple):
    """Everything that a call of the package must leave unchanged."""

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
    def read():
        """Return the current settings."""
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


def restore(settings):
    """Restore the settings, so that one failure does not cause the next."""
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
    """Check that the block leaves the settings and all random number generators unchanged."""
    before = Settings.read()
    try:
        yield
        after = Settings.read()
        changed = [name for name in Settings._fields if getattr(after, name) != getattr(before, name)]
        assert changed == []
    finally:
        restore(before)
