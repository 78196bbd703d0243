"""The registry of datasets by name. Their files are laid out as torchvision has them, and read by its own readers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from repeat_xai.data.cifar10 import CIFAR10_DATASETS
from repeat_xai.data.dataset import Dataset, NamedDataset, Sample
from repeat_xai.errors import ConfigurationError, ImageError, OutputError
from repeat_xai.files.reading import expect_regular

VOID = 255
"""Class in VOC's segmentations of pixels that are neither object nor background."""
MAX_OUTLINE_DISTANCE = 2
"""Largest coordinate of an outline in COCO, in sides of the photo: a few outlines go a little beyond the photo, but one
far outside would crash pycocotools."""


def voc(root: Path, *, download: bool) -> Dataset:
    """Open the validation set for segmentation of PASCAL VOC 2012."""
    from torchvision.datasets import VOCSegmentation

    photos = VOCSegmentation(root, year="2012", image_set="val", download=download)

    def load(number: int) -> Sample:
        _expect_files(photos.images[number], photos.masks[number])
        picture, segmentation = photos[number]
        classes = np.asarray(segmentation)
        return Sample(picture=picture, segmentation=(classes > 0) & (classes != VOID))

    return Dataset(name="voc", keys=[Path(path).stem for path in photos.images], load=load)


def coco(root: Path, *, download: bool) -> Dataset:
    """Open the training set of MS-COCO 2017; crowds do not count as objects."""
    from torchvision.datasets import CocoDetection

    if download:
        raise ConfigurationError("coco: cannot be downloaded; put train2017 and annotations into coco in the data root")
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints how long it takes
            annotations = root / "coco/annotations/instances_train2017.json"
            photos = CocoDetection(root / "coco/train2017", str(annotations))
    except ModuleNotFoundError as error:
        raise ConfigurationError("coco needs pycocotools; pip install 'repeat-xai[coco]'") from error

    def load(number: int) -> Sample:
        _expect_files(root / "coco/train2017" / photos.coco.imgs[photos.ids[number]]["file_name"])
        picture, annotated = photos[number]
        segmentation = np.zeros((picture.height, picture.width), dtype=bool)
        for annotation in annotated:
            if not annotation["iscrowd"]:
                record = photos.coco.imgs[annotation["image_id"]]
                _expect_outline_of(picture, annotation["segmentation"], record)
                segmentation |= photos.coco.annToMask(annotation).astype(bool)
        return Sample(picture=picture, segmentation=segmentation)

    return Dataset(name="coco", keys=[str(number) for number in photos.ids], load=load)


def eurosat(root: Path, *, download: bool) -> Dataset:
    """Open EuroSAT, which torchvision reads."""
    from torchvision.datasets import EuroSAT

    photos = EuroSAT(root, download=download)

    def load(number: int) -> Sample:
        _expect_files(photos.samples[number][0])
        picture, label = photos[number]
        return Sample(picture=picture, label=label)

    return Dataset(name="eurosat", keys=[Path(path).stem for path, _ in photos.samples], load=load)


def fashionmnist(root: Path, *, download: bool) -> Dataset:
    """Open the test set of FashionMNIST."""
    from torchvision.datasets import FashionMNIST

    pictures = FashionMNIST(root, train=False, download=download)

    def load(number: int) -> Sample:
        picture, label = pictures[number]
        return Sample(picture=picture, label=label)

    return Dataset(name="fashionmnist", keys=[f"test-{number}" for number in range(len(pictures))], load=load)


DATASETS: dict[str, NamedDataset] = {
    "voc": NamedDataset(
        title="PASCAL VOC",
        description="PASCAL VOC 2012, the validation set for segmentation: photos with the pixels of their objects",
        open=voc,
    ),
    "coco": NamedDataset(
        title="MS-COCO",
        description="MS-COCO 2017, the training set: photos with the pixels of their objects, without crowds",
        open=coco,
    ),
    "eurosat": NamedDataset(
        title="EuroSAT", description="EuroSAT: satellite images of 64×64 pixels in ten classes", open=eurosat
    ),
    "fashionmnist": NamedDataset(
        title="FashionMNIST",
        description="FashionMNIST, the test set: grey pictures of clothes of 28×28 pixels in ten classes",
        open=fashionmnist,
    ),
    **CIFAR10_DATASETS,
}
"""The datasets by name. The command line, `repeat-xai list datasets`, its errors and the captions of figures read this
registry, so adding a dataset takes a function that opens it and an entry here."""


def _expect_files(*paths: str | Path) -> None:
    """Raise an ImageError if a FIFO or a device is in the place of an image: torchvision would wait for it forever."""
    for path in paths:
        try:
            expect_regular(Path(path))
        except OutputError as error:
            raise ImageError(str(error)) from error


def _expect_outline_of(picture: PIL.Image.Image, outline: Any, record: Mapping[str, Any]) -> None:
    """Raise an ImageError if an object's outline does not fit its photo: pycocotools would crash the process."""
    size = [picture.height, picture.width]
    if [record["height"], record["width"]] != size:
        raise ImageError(f"{record['file_name']}: its annotations are for a photo of another size than {size}")
    if isinstance(outline, dict):  # lengths of runs of pixels, with the size of the photo
        fits = outline["size"] == size
    else:  # polygons, each a list of coordinates
        farthest = MAX_OUTLINE_DISTANCE * max(size)
        fits = all(-farthest <= coordinate <= farthest for polygon in outline for coordinate in polygon)
    if not fits:
        raise ImageError(f"{record['file_name']}: its annotations have an object that lies outside of the photo")
