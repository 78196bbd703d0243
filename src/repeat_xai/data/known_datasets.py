"""The paper's datasets, by torchvision's own readers, laid out as torchvision has them."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.data.poisons import ARRAYS
from repeat_xai.errors import ConfigurationError, ImageError, OutputError
from repeat_xai.files.arrays import read_arrays
from repeat_xai.files.reading import expect_regular

VOID = 255
"""In VOC's masks: neither object nor background."""
FARTHEST = 2
"""Sides of the picture that a corner of an object may lie off, in COCO: some lie outside by a fraction of a pixel."""


def voc(root: Path, *, download: bool) -> Dataset:
    """PASCAL VOC 2012, the validation set of segmentation: photos with the pixels of their objects."""
    from torchvision.datasets import VOCSegmentation

    found = VOCSegmentation(root, year="2012", image_set="val", download=download)

    def load(number: int) -> Sample:
        _expect_files(found.images[number], found.masks[number])
        picture, classes = found[number]
        labels = np.asarray(classes)
        return Sample(picture=picture, mask=(labels > 0) & (labels != VOID))

    return Dataset(name="voc", keys=[Path(path).stem for path in found.images], load=load)


def coco(root: Path, *, download: bool) -> Dataset:
    """MS-COCO 2017: photos with the pixels of their objects, crowds left out."""
    from torchvision.datasets import CocoDetection

    if download:
        raise ConfigurationError("coco: cannot be downloaded; put train2017 and annotations in DATA_ROOT/coco")
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools tells how long it takes
            notes = root / "coco/annotations/instances_train2017.json"
            found = CocoDetection(root / "coco/train2017", str(notes))
    except ModuleNotFoundError as error:
        raise ConfigurationError("coco needs pycocotools; pip install 'repeat-xai[coco]'") from error

    def load(number: int) -> Sample:
        _expect_files(root / "coco/train2017" / found.coco.imgs[found.ids[number]]["file_name"])
        picture, objects = found[number]
        mask = np.zeros((picture.height, picture.width), dtype=bool)
        for thing in objects:
            if not thing["iscrowd"]:
                _expect_outline_of(picture, thing["segmentation"], found.coco.imgs[thing["image_id"]])
                mask |= found.coco.annToMask(thing).astype(bool)
        return Sample(picture=picture, mask=mask)

    return Dataset(name="coco", keys=[str(number) for number in found.ids], load=load)


def _expect_files(*paths: str | Path) -> None:
    """Refuse a FIFO or a device in the place of a picture: torchvision would wait for it without end."""
    for path in paths:
        try:
            expect_regular(Path(path))
        except OutputError as error:
            raise ImageError(str(error)) from error


def _expect_outline_of(picture: PIL.Image.Image, outline: Any, about: Mapping[str, Any]) -> None:
    """Refuse an object's outline that is not of this picture: pycocotools would crash the process with it."""
    size = [picture.height, picture.width]
    if [about["height"], about["width"]] != size:
        raise ImageError(f"{about['file_name']}: the annotations are of a picture of another size than {size}")
    if isinstance(outline, dict):
        fits = outline["size"] == size
    else:
        farthest = FARTHEST * max(size)
        fits = all(-farthest <= place <= farthest for polygon in outline for place in polygon)
    if not fits:
        raise ImageError(f"{about['file_name']}: the annotations have an object that lies outside of the picture")


def eurosat(root: Path, *, download: bool) -> Dataset:
    """EuroSAT: satellite images of 64×64 pixels."""
    from torchvision.datasets import EuroSAT

    found = EuroSAT(root, download=download)

    def load(number: int) -> Sample:
        _expect_files(found.samples[number][0])
        return _labelled(*found[number])

    return Dataset(name="eurosat", keys=[Path(path).stem for path, _ in found.samples], load=load)


def fashionmnist(root: Path, *, download: bool) -> Dataset:
    """FashionMNIST, the test set: grey pictures of clothes, 28×28 pixels."""
    from torchvision.datasets import FashionMNIST

    found = FashionMNIST(root, train=False, download=download)
    keys = [f"test-{number}" for number in range(len(found))]
    return Dataset(name="fashionmnist", keys=keys, load=lambda number: _labelled(*found[number]))


def cifar10(root: Path, *, download: bool) -> Dataset:
    """CIFAR-10, the training set: `cifar10/clean.npz` with `images` and `labels`, or torchvision's own files."""
    images, labels = cifar10_arrays(root, download=download)
    return from_arrays("cifar10", images, labels)


def cifar10_arrays(root: Path, *, download: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 32, 32, 3] and labels."""
    from torchvision.datasets import CIFAR10

    packed = root / "cifar10/clean.npz"
    if packed.is_file() and not download:
        arrays = read_arrays(packed, ARRAYS)
        return arrays["images"], arrays["labels"]
    found = CIFAR10(root, download=download)
    return found.data, np.asarray(found.targets)


def from_arrays(name: str, images: np.ndarray, labels: np.ndarray) -> Dataset:
    """Images [n, h, w, 3] in uint8."""
    keys = [f"{n} ({hashlib.sha256(image.tobytes()).hexdigest()[:12]})" for n, image in enumerate(images)]

    def load(number: int) -> Sample:
        return _labelled(PIL.Image.fromarray(images[number]), int(labels[number]))

    return Dataset(name=name, keys=keys, load=load)


def _labelled(picture: PIL.Image.Image, label: int) -> Sample:
    return Sample(picture=picture, label=label)


DATASETS: dict[str, Callable[..., Dataset]] = {f.__name__: f for f in (voc, coco, eurosat, fashionmnist, cifar10)}
