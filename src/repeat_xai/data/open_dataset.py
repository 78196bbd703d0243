"""Datasets by name: the paper's, CIFAR-10 under a poison, or any folder of images."""

from __future__ import annotations

from pathlib import Path

from repeat_xai.data.content_keys import Check, by_content
from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.data.image_folder import SUFFIXES, folder
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.data.poisoned_cifar10 import POISONS, poisoned
from repeat_xai.errors import ConfigurationError, reason

__all__ = ["DATASETS", "POISONS", "SUFFIXES", "Check", "Dataset", "Sample", "opened"]


def opened(name: str, *, root: Path, download: bool = False, check: Check = "time") -> Dataset:
    """Return the dataset of this name: `voc`, `cifar10+tap`, or the path of a folder of images."""
    dataset = _opened(name, root=root, download=download, stamped=check == "time")
    return by_content(dataset) if check == "content" else dataset


def _opened(name: str, *, root: Path, download: bool, stamped: bool) -> Dataset:
    clean, _, poison = name.partition("+")
    if name not in DATASETS and not (clean == "cifar10" and poison):
        if Path(name).is_dir():
            return folder(Path(name), stamped=stamped)
        raise ConfigurationError(
            f"unknown dataset '{name}'; give a folder of images or one of: {', '.join(DATASETS)}, "
            f"{', '.join(f'cifar10+{poison}' for poison in POISONS)}"
        )
    try:
        return poisoned(poison, root=root, download=download) if poison else DATASETS[name](root, download=download)
    except ConfigurationError:
        raise
    except Exception as error:  # torchvision and pycocotools meet damaged files with errors of every kind
        where = f"not found under {root} ({reason(error)})"
        raise ConfigurationError(f"{name}: {where}; say where it is by --data-root, or add --download") from error
