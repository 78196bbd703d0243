"""Functions that turn the name of a dataset into the dataset, and into words for captions."""

from __future__ import annotations

import difflib
import os
from functools import partial
from pathlib import Path

from repeat_xai.data.cifar10 import poisoned_cifar10
from repeat_xai.data.content_keys import Check, with_content_keys
from repeat_xai.data.dataset import Dataset, OpenDataset
from repeat_xai.data.image_files import image_folder
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.errors import ConfigurationError, reason


def open_dataset(name: str, *, root: Path, download: bool = False, check: Check = "time") -> Dataset:
    """Return the dataset of a name.

    `name` is a name in `DATASETS`, `cifar10+FILE` for CIFAR-10 under a poison of your own, or the path of a folder of
    images. `root` is the folder in which the named datasets lie; those that are missing are fetched if `download`.
    `check` says how a changed image of a folder is noticed: by the time and size of its file, or by its content.
    """
    dataset = _open(name, root=root, download=download, stamped=check == "time")
    return with_content_keys(dataset) if check == "content" else dataset


def dataset_title(name: str) -> str:
    """Return the words by which captions name a dataset; a folder is called by its own name.

    >>> dataset_title("voc"), dataset_title("cifar10+tap"), dataset_title("/photos/cats")
    ('PASCAL VOC', 'CIFAR-10 under TAP', 'cats')
    """
    if name in DATASETS:
        return DATASETS[name].title
    clean, _, file = name.partition("+")
    return f"{DATASETS[clean].title} under {Path(file).stem}" if clean in DATASETS and file else Path(name).name


def dataset_name(name: str) -> str:
    """Return the name of a dataset in tables and figures, which show no folders of the machine that made them.

    >>> dataset_name("voc"), dataset_name("cifar10+/poisons/mine.npz"), dataset_name("/photos/cats")
    ('voc', 'cifar10+mine.npz', 'cats')
    """
    clean, plus, file = name.partition("+")
    return f"{clean}{plus}{Path(file).name}" if clean in DATASETS else Path(name).name or name


def _open(name: str, *, root: Path, download: bool, stamped: bool) -> Dataset:
    clean, _, file = name.partition("+")
    opener: OpenDataset
    if name in DATASETS:
        opener = DATASETS[name].open
    elif clean == "cifar10" and os.path.isfile(file):  # noqa: PTH113 - unlike Path.is_file, no error for a long name
        opener = partial(poisoned_cifar10, file)
    elif os.path.isdir(name):  # noqa: PTH112 - likewise
        return image_folder(Path(name), stamped=stamped)
    else:
        raise ConfigurationError(f"unknown dataset '{name}'; {_suggestion(name)}")
    try:
        return opener(root, download=download)
    except ConfigurationError:
        raise
    except Exception as error:  # torchvision and pycocotools raise errors of many classes for damaged files
        raise ConfigurationError(
            f"{name}: not found under {root} ({reason(error)}); give another data root, or download it"
        ) from error


def _suggestion(name: str) -> str:
    """Return what may be written in place of an unknown name, the nearest names first."""
    nearest = difflib.get_close_matches(name, DATASETS)
    question = f"did you mean {' or '.join(nearest)}? " if nearest else ""
    return f"{question}give a folder of images, cifar10+FILE for poisoned images, or one of: {', '.join(DATASETS)}"
