"""Tests that damaged, huge or wrong files of datasets give one line, take little memory and crash nothing."""

import json
import os
import tracemalloc

import numpy as np
import PIL.Image
import pytest
import torch
from hostile.damages import SPECIAL, cut, filled, npy, packed, with_parts, zeroed
from hostile.image_bytes import PICTURE, saved
from hostile.verdicts import Case, verdict_of_call

from repeat_xai.data.images import segmentation_to_image
from repeat_xai.data.open_dataset import open_dataset

MAX_BYTES = 40e6
COUNT = 6
IMAGES = np.random.default_rng(0).integers(0, 256, (COUNT, 32, 32, 3), np.uint8)
LABELS = np.arange(COUNT)
COEFFICIENTS = np.full((COUNT, 3, 3, 3), 0.1, np.float32)


def sparse(path):
    os.truncate(path, 6 * 2**30)


def pickled(path):
    torch.save({"delta": Evil()}, path)


class Evil:
    """An object that would run code when it is unpickled."""

    def __reduce__(self):
        return os.system, ("true",)


DAMAGES = {
    "empty": filled(b""),
    "cut to a half": cut(0.5),
    "zeros": zeroed,
    "six gigabytes of nothing": sparse,
    "text": filled(b"hello"),
    **{what: make for what, make in SPECIAL.items() if what != "a folder"},
}
HEADERS = {
    "a shape of a trillion": {"shape": (10**6, 10**6, 3, 3)},
    "a shape beyond every integer": {"shape": (10**30, 3, 3, 3)},
    "a shape below zero": {"shape": (-COUNT, 3, 3, 3)},
    "objects": {"descr": "|O"},
    "text of a billion letters": {"descr": f"<U{10**9}"},
    "complex numbers": {"descr": "<c16"},
}
FILE = {"cifar10": "clean.npz", "cifar10+ar": "ar_coefficients.npy", "cifar10+cp": "poisoned_cp.pth"}


def bomb(path):
    """Write images of 3 GB that are compressed to 3 MB."""
    header = npy(IMAGES[:0], shape=(10**6, 32, 32, 3))
    packed({"images.npy": header + bytes(64 * 2**20), "labels.npy": npy(LABELS)}, path)


def case(dataset, what, damage, expected="refused", message=""):
    file = FILE.get(dataset, "poisoned_tap.npz")
    return Case(
        name=f"{dataset}: {what}", make=lambda root: damage(root / "cifar10" / file), expected=expected, message=message
    )


CASES = [
    *(case(name, what, damage) for name in (*FILE, "cifar10+tap") for what, damage in DAMAGES.items()),
    *(case("cifar10+ar", what, filled(npy(COEFFICIENTS, **lie))) for what, lie in HEADERS.items()),
    *(case("cifar10", what, with_parts(images=npy(IMAGES, **lie))) for what, lie in HEADERS.items()),
    *(case("cifar10+tap", what, with_parts(images=npy(IMAGES, **lie))) for what, lie in HEADERS.items()),
    case("cifar10", "a bomb", bomb),
    case("cifar10", "no labels", with_parts(labels=...)),
    case("cifar10", "labels of floats", with_parts(labels=LABELS / 3), message="labels"),
    case("cifar10", "another array", with_parts(more=LABELS), message="it holds"),
    case("cifar10+tap", "pickled images", with_parts(images=np.full(3, None))),
    case("cifar10+ar", "coefficients of text", filled(npy(np.array(["a"])))),
    case("cifar10+cp", "a pickle that runs code", pickled),
    case("cifar10+cp", "noise that is a list", lambda path: torch.save({"delta": [1, 2]}, path)),
    *(case(name, "whole", lambda path: None, "right") for name in (*FILE, "cifar10+tap")),
    case("cifar10", "of other whole numbers", with_parts(labels=LABELS.astype(np.uint8)), "right"),
]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=IMAGES, labels=LABELS)
    np.savez(tmp_path / "cifar10/poisoned_tap.npz", images=255 - IMAGES, index=np.arange(COUNT))
    np.save(tmp_path / "cifar10/ar_coefficients.npy", COEFFICIENTS)
    torch.save({"delta": torch.ones(COUNT, 3, 32, 32)}, tmp_path / "cifar10/poisoned_cp.pth")
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_arrays_are_read_or_refused_in_one_line(case, root, judge):
    case.make(root)
    tracemalloc.start()
    try:
        verdict = verdict_of_call(lambda: open_dataset(case.name.partition(":")[0], root=root))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    judge("dataset files", verdict, case)
    assert peak < MAX_BYTES
    if case.expected == "right":
        assert len(open_dataset(case.name.partition(":")[0], root=root)) == COUNT


SQUARE = [[8, 8, 24, 8, 24, 24, 8, 24]]
OUTLINES = {
    "a corner a billion pixels away": [[0, 0, 1e9, 0, 1e9, 1e9, 0, 1e9]],
    "a corner that is no number": [[0, 0, float("nan"), 0, 5, 5]],
    "a corner infinitely far away": [[0, 0, float("inf"), 0, 5, 5]],
    "a corner in words": [["left", 0, 5, 5, 6, 6]],
    "runs of a picture of a trillion pixels": {"size": [10**6, 10**6], "counts": "04L"},
    "runs that are too long": {"size": [32, 32], "counts": [0, 10**6]},
    "runs of garbage": {"size": [32, 32], "counts": "\xff\xffooooooo"},
    "runs below zero": {"size": [32, 32], "counts": [-5, 9]},
    "runs without a size": {"counts": [0, 9]},
    "a number": 5,
    "nothing": None,
}


def coco_of(root, outline=None, **about):
    """Write a COCO dataset of one picture with one object."""
    (root / "coco/train2017").mkdir(parents=True)
    (root / "coco/annotations").mkdir()
    PICTURE.save(root / "coco/train2017/1.jpg")
    annotations = {
        "images": [{"id": 1, "file_name": "1.jpg", "height": 32, "width": 32, **about}],
        "annotations": [{"id": 1, "image_id": 1, "iscrowd": 0, "category_id": 1, "segmentation": outline}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (root / "coco/annotations/instances_train2017.json").write_text(json.dumps(annotations))


COCO = [
    *(Case(name=what, make=lambda root, outline=outline: coco_of(root, outline)) for what, outline in OUTLINES.items()),
    Case(
        name="a picture of another size", make=lambda root: coco_of(root, SQUARE, height=10**6), message="another size"
    ),
    Case(name="a picture without a size", make=lambda root: coco_of(root, SQUARE, width=None)),
    Case(name="a square", make=lambda root: coco_of(root, SQUARE), expected="right"),
    Case(
        name="a corner half a pixel away", make=lambda root: coco_of(root, [[-0.5, 0, 40, 0, 9, 9]]), expected="right"
    ),
]


@pytest.mark.parametrize("case", COCO, ids=str)
def test_wrong_outlines_are_refused_in_one_line(case, judge, tmp_path):
    pytest.importorskip("pycocotools", reason="there is no pycocotools: install the extra [coco]")
    case.make(tmp_path)
    dataset = open_dataset("coco", root=tmp_path)
    verdict = verdict_of_call(lambda: dataset[0])
    judge("dataset files", verdict, case)
    assert dataset.has_segmentations == (case.expected == "right")
    if case.name == "a square":
        assert dataset[0].segmentation.sum() == 256


ANNOTATIONS = ("", "[]", "{", "[" * 100_000, "5", '{"images": 5}', '{"annotations": [{}]}', "\0" * 99)


@pytest.mark.parametrize("annotations", ANNOTATIONS, ids=[note[:20] for note in ANNOTATIONS])
def test_invalid_annotations_are_refused_in_one_line(annotations, judge, tmp_path):
    pytest.importorskip("pycocotools", reason="there is no pycocotools: install the extra [coco]")
    coco_of(tmp_path)
    (tmp_path / "coco/annotations/instances_train2017.json").write_text(annotations)
    verdict = verdict_of_call(lambda: open_dataset("coco", root=tmp_path)[0])
    judge("dataset files", verdict, Case(name="notes", make=coco_of))


SEGMENTATIONS = {
    "cut": cut(0.5),
    "text": filled(b"hello"),
    "a bomb": filled(saved("PNG", PIL.Image.new("1", (14_000, 14_000)))),
    "of another size": filled(saved("PNG", PICTURE.convert("L").resize((9, 9)))),
    "a FIFO": SPECIAL["a FIFO"],
    "a link to nothing": SPECIAL["a link to nothing"],
    "an endless device": SPECIAL["an endless device"],
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torchvision does not close files
@pytest.mark.parametrize("what", SEGMENTATIONS)
def test_damaged_segmentations_are_refused_in_one_line(what, image, judge, tmp_path):
    root = tmp_path / "VOCdevkit/VOC2012"
    for folder in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (root / folder).mkdir(parents=True)
    PICTURE.save(root / "JPEGImages/a.jpg")
    PICTURE.convert("L").save(root / "SegmentationClass/a.png")
    (root / "ImageSets/Segmentation/val.txt").write_text("a\n")
    SEGMENTATIONS[what](root / "SegmentationClass/a.png")
    verdict = verdict_of_call(lambda: segmentation_to_image(open_dataset("voc", root=tmp_path)[0].segmentation, image))
    judge(
        "dataset files",
        verdict,
        Case(name=what, make=SEGMENTATIONS[what], message=r"cannot be read|is not of a photo|not a regular file"),
    )
