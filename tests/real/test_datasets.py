"""The paper's datasets as they are published, where they lie beside the repository."""

import numpy as np
import pytest

from repeat_xai.data.open_dataset import open_dataset

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("name", "images", "size"),
    [("voc", 200, None), ("coco", 128, None), ("eurosat", 500, (64, 64)), ("fashionmnist", 10_000, (28, 28)),
     ("cifar10", 2_000, (32, 32)), ("cifar10+tap", 2_000, (32, 32)), ("cifar10+ar", 2_000, (32, 32))],
)  # fmt: skip
def test_a_dataset_opens_with_masks_where_it_has_them(shared, name, images, size):
    dataset = open_dataset(name, root=shared / "data")
    assert len(dataset) == images
    assert len(set(dataset.keys)) == images
    sample = dataset[dataset.draw(1, seed=0)[0]]
    if size is None:
        assert sample.segmentation.shape == (sample.picture.height, sample.picture.width)
        assert 0 < sample.segmentation.mean() < 1
    else:
        assert sample.picture.size == size
        assert sample.segmentation is None
        assert 0 <= sample.label < 10


def test_a_voc_mask_is_every_class_but_background_and_void(shared):
    import PIL.Image

    voc = open_dataset("voc", root=shared / "data")
    number = voc.draw(3, seed=1)[2]
    path = shared / f"data/VOCdevkit/VOC2012/SegmentationClass/{voc.keys[number]}.png"
    classes = np.asarray(PIL.Image.open(path))
    assert np.array_equal(voc[number].segmentation, np.isin(classes, range(1, 21)))


def test_the_poison_changes_every_image_by_at_most_eight_levels(shared):
    clean, poisoned = (open_dataset(name, root=shared / "data") for name in ("cifar10", "cifar10+tap"))
    for number in clean.draw(5, seed=0):
        away = np.asarray(clean[number].picture).astype(int) - np.asarray(poisoned[number].picture)
        assert np.abs(away).max() == 8
