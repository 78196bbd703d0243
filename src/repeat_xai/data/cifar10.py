"""CIFAR-10, clean and poisoned: poisoned images as they are published, or made by a published recipe.

A poisoned dataset has the same images as the clean one, in the same order, each changed by noise that is hardly seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image

from repeat_xai.data.dataset import Dataset, NamedDataset, Sample
from repeat_xai.data.poisons import ARRAYS, COEFFICIENTS, autoregressive, poisoned_images, separable
from repeat_xai.errors import ConfigurationError, reason
from repeat_xai.files.arrays import read_array, read_arrays

POISON_SEED = 0
"""Seed of the poisons that are made here: a poisoned dataset is the same in every run."""


class Poison(NamedTuple):
    """A way to poison CIFAR-10, and the words by which it is listed and captioned."""

    title: str
    """Name in the captions of figures."""
    description: str
    """Line of `repeat-xai list datasets`."""
    poison: Callable[[np.ndarray, np.ndarray, Path], np.ndarray]
    """Function of the clean images, their labels and the folder `cifar10` that returns the poisoned images."""


def cifar10(root: Path, *, download: bool) -> Dataset:
    """Open the training set, from `cifar10/clean.npz` with `images` and `labels`, or from torchvision's own files."""
    images, labels = _read_arrays(root, download=download)
    return _from_arrays("cifar10", images, labels)


def poisoned_cifar10(name: str, root: Path, *, download: bool) -> Dataset:
    """Open the training set under a poison of `POISONS`, or under one that is read from a file of this name."""
    images, labels = _read_arrays(root, download=download)
    if name in POISONS:
        changed = POISONS[name].poison(images, labels, root / "cifar10")
    else:
        changed = poisoned_images(images, Path(name), labels=labels)
    if len(changed) != len(images):
        raise ConfigurationError(
            f"{name}: {len(changed)} poisoned images for {len(images)} clean ones; give one for each"
        )
    return replace(_from_arrays(f"cifar10+{name}", changed, labels), same_images_as="cifar10")


def _published(file: str, images: np.ndarray, labels: np.ndarray, folder: Path) -> np.ndarray:
    _expect_file(folder / file)
    return poisoned_images(images, folder / file, labels=labels)


def _autoregressive(images: np.ndarray, labels: np.ndarray, folder: Path) -> np.ndarray:
    file = folder / "ar_coefficients.npy"
    _expect_file(file)
    with _naming(file, "coefficients"):
        coefficients = read_array(file, COEFFICIENTS)
    return autoregressive(images, labels, coefficients, seed=POISON_SEED)


def _separable(images: np.ndarray, labels: np.ndarray, folder: Path) -> np.ndarray:  # noqa: ARG001 - as the others
    return separable(images, labels, seed=POISON_SEED)


def _read_arrays(root: Path, *, download: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the images [n, 32, 32, 3] in uint8, and their labels."""
    from torchvision.datasets import CIFAR10

    packed = root / "cifar10/clean.npz"
    if packed.is_file() and not download:
        with _naming(packed, "images and labels"):
            arrays = read_arrays(packed, ARRAYS)
            return arrays["images"], arrays["labels"]
    published = CIFAR10(root, download=download)
    return published.data, np.asarray(published.targets)


def _expect_file(file: Path) -> None:
    """Refuse a poison whose file is missing."""
    if not file.is_file():
        raise ConfigurationError(f"no file {file}; put it there, or choose another poison: {', '.join(POISONS)}")


@contextmanager
def _naming(file: Path, content: str) -> Iterator[None]:
    """Turn any error of the block into one that names the damaged file and what it should hold."""
    try:
        yield
    except Exception as error:  # numpy and zipfile raise errors of many classes for damaged files
        raise ConfigurationError(f"{file}: holds no {content} that can be read ({reason(error)})") from error


def _from_arrays(name: str, images: np.ndarray, labels: np.ndarray) -> Dataset:
    """Return images [n, height, width, 3] in uint8 as a dataset; the keys hold digests, since the files may change."""
    keys = [f"{n} ({hashlib.sha256(image.tobytes()).hexdigest()[:12]})" for n, image in enumerate(images)]

    def load(number: int) -> Sample:
        return Sample(picture=PIL.Image.fromarray(images[number]), label=int(labels[number]))

    return Dataset(name=name, keys=keys, load=load)


POISONS = {
    "cp": Poison(
        "contrastive poisoning",
        "contrastive poisoning (He et al. 2023), the paper's; noise in cifar10/poisoned_cp.pth",
        partial(_published, "poisoned_cp.pth"),
    ),
    "tap": Poison(
        "TAP",
        "targeted adversarial poisoning (Fowl et al. 2021); images in cifar10/poisoned_tap.npz",
        partial(_published, "poisoned_tap.npz"),
    ),
    "ar": Poison(
        "autoregressive noise",
        "autoregressive noise of each class (Sandoval-Segura et al. 2022), by cifar10/ar_coefficients.npy",
        _autoregressive,
    ),
    "separable": Poison(
        "separable noise",
        "linearly separable noise of each class (Yu et al. 2022)",
        _separable,
    ),
}
"""The poisons of CIFAR-10 by name. To add one, add an entry: the dataset `cifar10+NAME` follows from it."""

CIFAR10_DATASETS = {
    "cifar10": NamedDataset(
        title="CIFAR-10", description="CIFAR-10, the training set: photos of 32×32 pixels in ten classes", open=cifar10
    )
} | {
    f"cifar10+{name}": NamedDataset(
        title=f"CIFAR-10 under {poison.title}",
        description=f"CIFAR-10 under {poison.description}",
        open=partial(poisoned_cifar10, name),
    )
    for name, poison in POISONS.items()
}
"""Entries of the registry `DATASETS` for CIFAR-10, clean and under each poison."""
