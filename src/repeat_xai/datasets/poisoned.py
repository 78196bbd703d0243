"""CIFAR-10 under a poison: as published arrays, or made anew.

tap          the arrays of `cifar10/poisoned_tap.npz` (Fowl et al. 2021)
ar           class-wise autoregressive noise (Sandoval-Segura et al. 2022) of `cifar10/ar_coefficients.npy`
separable    class-wise linearly separable noise (Yu et al. 2022)
FILE         any other poisoned images, or noise to be added, as arrays of the same images
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from repeat_xai.datasets.dataset import Dataset
from repeat_xai.datasets.known import cifar10_arrays, from_arrays
from repeat_xai.errors import ConfigurationError

POISONS = ("tap", "ar", "separable")
SEED = 0
"""A poison is a dataset of its own, the same in every run."""


def poisoned(name: str, *, root: Path, download: bool) -> Dataset:
    """The same images, in the same order, under the poison of this name."""
    from repeat_xai.datasets.poison import autoregressive, pairs, separable

    images, labels = cifar10_arrays(root, download=download)
    if name == "ar":
        changed = autoregressive(images, labels, np.load(root / "cifar10/ar_coefficients.npy"), seed=SEED)
    elif name == "separable":
        changed = separable(images, labels, seed=SEED)
    else:
        file = root / "cifar10/poisoned_tap.npz" if name == "tap" else Path(name)
        if not file.is_file():
            raise ConfigurationError(f"unknown poison '{name}'; give a file of arrays or one of: {', '.join(POISONS)}")
        changed = pairs(images, file)
    return from_arrays(f"cifar10+{name}", changed, labels[: len(changed)])
