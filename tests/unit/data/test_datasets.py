"""Datasets: pictures by number, drawn by seed, and refused in a line."""

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import repeat_xai as rx
from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.data.images import mask_to_image
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.data.open_dataset import opened


@pytest.fixture
def pictures(tmp_path):
    """Five PNGs in two folders, a text file beside them."""
    for number in range(5):
        path = tmp_path / f"pictures/{number % 2}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (20, 16), (number, 0, 0)).save(path)
    (tmp_path / "pictures/notes.txt").write_text("no picture")
    return tmp_path / "pictures"


def made_up(count: int, name: str = "made up") -> Dataset:
    return Dataset(name=name, keys=[str(n) for n in range(count)], load=lambda _: Sample(picture=Path("none")))


def test_a_folder_holds_the_images_below_it_by_place_and_size(pictures):
    found = opened(str(pictures), root=Path("nowhere"))
    assert [key.split(" (")[0] for key in found.keys] == ["0/0.png", "0/2.png", "0/4.png", "1/1.png", "1/3.png"]
    about = (pictures / "0/0.png").stat()
    assert found.keys[0].endswith(f"({about.st_size} bytes, {about.st_mtime_ns})")
    assert found[3].picture == pictures / "1/1.png"


def test_fewer_images_are_the_first_of_more_and_another_seed_draws_others():
    dataset = made_up(1000)
    assert dataset.drawn(20, seed=3) == dataset.drawn(200, seed=3)[:20]
    assert dataset.drawn(20, seed=3) != dataset.drawn(20, seed=4)
    assert dataset.drawn(20, seed=3) != made_up(1000, name="another").drawn(20, seed=3)
    assert sorted(dataset.drawn(1000, seed=0)) == list(range(1000))
    assert dataset.drawn(None, seed=0) == list(range(1000))


def test_every_image_is_as_likely_to_be_drawn():
    times = np.bincount([n for seed in range(300) for n in made_up(20).drawn(5, seed=seed)], minlength=20)
    expected = 300 * 5 / 20
    assert ((times - expected) ** 2 / expected).sum() < 43.8  # χ² with 19 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("imagenet", "unknown dataset 'imagenet'; give a folder of images or one of: voc, coco"),
        ("voc", "voc: not found under"),
        ("eurosat", "say where it is by --data-root, or add --download"),
        ("cifar10+tap", "cifar10+tap: not found under"),
    ],
)
def test_what_is_not_there_is_said_in_a_line(name, words, tmp_path):
    with pytest.raises(rx.RepeatError) as refused:
        opened(name, root=tmp_path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_empty_folder_and_too_many_images_are_refused(tmp_path):
    with pytest.raises(rx.RepeatError, match="no JPEG, PNG"):
        opened(str(tmp_path), root=tmp_path)
    with pytest.raises(rx.RepeatError, match="has 5 images, not 6"):
        made_up(5).drawn(6, seed=0)


def test_cifar_is_read_from_arrays_and_poisoned_ones_keep_their_order(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8), np.arange(12) % 10
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=images, labels=labels)
    np.savez(tmp_path / "mine.npz", images=255 - images)
    clean = opened("cifar10", root=tmp_path)
    assert np.array_equal(np.asarray(clean[7].picture), images[7])
    assert clean[11].label == 1
    mine = opened(f"cifar10+{tmp_path / 'mine.npz'}", root=tmp_path)
    assert np.array_equal(np.asarray(mine[7].picture), 255 - images[7])
    made = opened("cifar10+separable", root=tmp_path)
    assert len(made) == len(clean)
    assert [key.split(" ")[0] for key in made.keys] == [key.split(" ")[0] for key in clean.keys]
    assert not set(made.keys) & set(clean.keys)
    assert 0 < np.abs(np.asarray(made[7].picture).astype(int) - images[7]).max() < 40
    with pytest.raises(rx.RepeatError, match=r"no file .*poisoned_cp.pth; give a file of arrays or one of: cp, tap"):
        opened("cifar10+cp", root=tmp_path)
    with pytest.raises(rx.RepeatError, match="unknown poison 'nonsense'"):
        opened("cifar10+nonsense", root=tmp_path)


def test_the_same_folder_elsewhere_draws_the_same_images(pictures, tmp_path):
    shutil.copytree(pictures, tmp_path / "copy/pictures")
    here, there = (opened(str(path), root=tmp_path) for path in (pictures, tmp_path / "copy/pictures"))
    assert here.drawn(3, seed=0) == there.drawn(3, seed=0)
    assert here.name != there.name


def test_too_few_poisoned_images_and_broken_files_are_refused(tmp_path):
    (tmp_path / "cifar10").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "few.npz", images=255 - images[:4])
    for content, words in (({"pixels": images}, "not found under"), ({"images": images, "labels": np.arange(6)}, "")):
        np.savez(tmp_path / "cifar10/clean.npz", **content)
        with pytest.raises(rx.RepeatError, match=words or "4 poisoned images for 6 clean ones"):
            opened("cifar10" if words else f"cifar10+{tmp_path / 'few.npz'}", root=tmp_path)
    with pytest.raises(rx.RepeatError, match="unknown dataset 'cifar10\\+'"):
        opened("cifar10+", root=tmp_path)


def test_whatever_a_reader_raises_is_said_of_the_picture():
    def load(number):
        if number < 2:
            raise SyntaxError("broken PNG file (chunk b'abc')") if number else KeyError("no such thing")
        return Sample(picture=Path("none"), mask=np.ones((2, 2), dtype=bool))

    dataset = Dataset(name="spoilt", keys=["a", "b", "c"], load=load)
    with pytest.raises(rx.errors.ImageError, match=r"b: cannot be read \(broken PNG file \(chunk b'abc'\)\)"):
        dataset[1]
    assert dataset.masked
    assert not made_up(3).masked
    assert not Dataset(name="spoilt", keys=["a", "b"], load=load).masked


def test_a_link_to_nothing_is_no_image(pictures):
    (pictures / "gone.jpg").symlink_to(pictures / "nowhere.jpg")
    assert len(opened(str(pictures), root=pictures)) == 5


def test_every_dataset_is_known_by_its_name():
    assert list(DATASETS) == ["voc", "coco", "eurosat", "fashionmnist", "cifar10"]


@pytest.mark.parametrize("protocol", ["encoder", "paper"])
@pytest.mark.parametrize(("width", "height"), [(300, 200), (120, 260)])
def test_a_mask_goes_where_its_photo_goes(protocol, width, height):
    """A photo painted white where its mask is: seen through the encoder, they still agree."""
    encoder = rx.load_encoder("torchvision:squeezenet1_1", weights="random", device="cpu")
    mask = np.zeros((height, width), dtype=bool)
    mask[height // 4 : height // 2, width // 3 : 2 * width // 3] = True
    picture = PIL.Image.fromarray(np.where(mask[..., None], 255, 0).astype(np.uint8).repeat(3, axis=2))
    image = rx.load_image(picture, encoder, protocol=protocol, name="painted")
    white = image.pixels[0] > (image.pixels[0].min() + image.pixels[0].max()) / 2
    seen = mask_to_image(mask, image)
    assert image.photo.name == "painted"
    assert (seen == white).double().mean() > 0.985
    assert seen.any()
    assert torch.equal(seen, mask_to_image(mask, image))


def test_a_mask_of_another_photo_is_refused(image):
    with pytest.raises(rx.RepeatError, match="is not of a photo of"):
        mask_to_image(np.zeros((3, 3), dtype=bool), image)
