"""CIFAR-10 under a poison: as published arrays, or made anew.

cp           contrastive poisoning (He et al. 2023), the paper's: noise in `cifar10/poisoned_cp.pth`
tap          the arrays of `cifar10/poisoned_tap.npz` (Fowl et al. 2021)
ar           class-wise autoregressive noise (Sandoval-Segura et al. 2022) of `cifar10/ar_coefficients.npy`
separable    class-wise linearly separable noise (Yu et al. 2022)
FILE         any other poisoned images, or noise to be added, as arrays of the same images
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from repeat_xai.data.dataset import Dataset
from repeat_xai.data.known_datasets import cifar10_arrays, from_arrays
from repeat_xai.data.poisons import COEFFICIENTS, autoregressive, pairs, separable
from repeat_xai.errors import ConfigurationError
from repeat_xai.files.arrays import read_array

POISONS = ("cp", "tap", "ar", "separable")
FILES = {"cp": "poisoned_cp.pth", "tap": "poisoned_tap.npz"}
"""Of those that are not made anew."""
SEED = 0
"""A poison is a dataset of its own, the same in every run."""


def poisoned(name: str, *, root: Path, download: bool) -> Dataset:
    """The same images, in the same order, under the poison of this name."""
    images, labels = cifar10_arrays(root, download=download)
    if name == "ar":
        coefficients = read_array(root / "cifar10/ar_coefficients.npy", COEFFICIENTS)
        changed = autoregressive(images, labels, coefficients, seed=SEED)
    elif name == "separable":
        changed = separable(images, labels, seed=SEED)
    else:
        file = root / "cifar10" / FILES[name] if name in FILES else Path(name)
        if not file.is_file():
            known = f"no file {file}" if name in FILES else f"unknown poison '{name}'"
            raise ConfigurationError(f"{known}; give a file of arrays or one of: {', '.join(POISONS)}")
        changed = pairs(images, file, labels=labels)
    if len(changed) != len(images):
        raise ConfigurationError(
            f"{name}: {len(changed)} poisoned images for {len(images)} clean ones; give one for each"
        )
    return replace(from_arrays(f"cifar10+{name}", changed, labels), drawn_as="cifar10")
