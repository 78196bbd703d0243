"""Tests of datasets: images by number, random draws, the registry of names, and errors in one line."""

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch

import repeat_xai as rx
from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.data.images import segmentation_to_image
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.data.open_dataset import dataset_name, dataset_title, open_dataset
from repeat_xai.errors import ConfigurationError


@pytest.fixture
def pictures(tmp_path):
    """Return a folder with five PNGs in two sub-folders and a text file beside them."""
    for number in range(5):
        path = tmp_path / f"pictures/{number % 2}/{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.new("RGB", (20, 16), (number, 0, 0)).save(path)
    (tmp_path / "pictures/notes.txt").write_text("no picture")
    return tmp_path / "pictures"


def dataset_of(count: int, name: str = "made up") -> Dataset:
    return Dataset(name=name, keys=[str(n) for n in range(count)], load=lambda _: Sample(picture=Path("none")))


def test_the_keys_of_a_folder_hold_path_size_and_time(pictures):
    found = open_dataset(str(pictures), root=Path("nowhere"))
    assert [key.split(" (")[0] for key in found.keys] == ["0/0.png", "0/2.png", "0/4.png", "1/1.png", "1/3.png"]
    about = (pictures / "0/0.png").stat()
    assert found.keys[0].endswith(f"({about.st_size} bytes, {about.st_mtime_ns})")
    assert found[3].picture == pictures / "1/1.png"


def test_fewer_images_are_the_first_of_more_and_another_seed_draws_others():
    dataset = dataset_of(1000)
    assert dataset.draw(20, seed=3) == dataset.draw(200, seed=3)[:20]
    assert dataset.draw(20, seed=3) != dataset.draw(20, seed=4)
    assert dataset.draw(20, seed=3) != dataset_of(1000, name="another").draw(20, seed=3)
    assert sorted(dataset.draw(1000, seed=0)) == list(range(1000))
    assert dataset.draw(None, seed=0) == list(range(1000))


def test_every_image_is_as_likely_to_be_drawn():
    times = np.bincount([n for seed in range(300) for n in dataset_of(20).draw(5, seed=seed)], minlength=20)
    expected = 300 * 5 / 20
    assert ((times - expected) ** 2 / expected).sum() < 43.8  # χ² with 19 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("name", "key_words"),
    [
        ("imagenet", ["unknown dataset 'imagenet'", "a folder", "voc, coco"]),
        ("eurosta", ["unknown dataset", "did you mean eurosat?"]),
        ("cifar+tap", ["unknown dataset", "did you mean cifar10+tap or"]),
        ("x" * 300, ["unknown dataset"]),
        ("voc", ["voc: not found under"]),
        ("eurosat", ["data root", "download"]),
        ("cifar10+tap", ["cifar10+tap: not found under"]),
    ],
)
def test_a_dataset_that_is_unknown_or_missing_is_wrong_usage_in_one_line(name, key_words, tmp_path):
    with pytest.raises(ConfigurationError) as refused:
        open_dataset(name, root=tmp_path)
    message = str(refused.value)
    assert all(word in message for word in key_words), message
    assert "\n" not in message
    assert "--" not in message  # a library error names no option of the command


def test_an_empty_folder_and_too_many_images_are_refused(tmp_path):
    with pytest.raises(rx.RepeatError, match="no JPEG, PNG"):
        open_dataset(str(tmp_path), root=tmp_path)
    with pytest.raises(rx.RepeatError, match="not 6"):
        dataset_of(5).draw(6, seed=0)


def test_cifar_is_read_from_arrays_and_poisoned_ones_keep_their_order(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8), np.arange(12) % 10
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=images, labels=labels)
    np.savez(tmp_path / "mine.npz", images=255 - images)
    clean = open_dataset("cifar10", root=tmp_path)
    assert np.array_equal(np.asarray(clean[7].picture), images[7])
    assert clean[11].label == 1
    mine = open_dataset(f"cifar10+{tmp_path / 'mine.npz'}", root=tmp_path)
    assert np.array_equal(np.asarray(mine[7].picture), 255 - images[7])
    made = open_dataset("cifar10+separable", root=tmp_path)
    assert len(made) == len(clean)
    assert [key.split(" ")[0] for key in made.keys] == [key.split(" ")[0] for key in clean.keys]
    assert not set(made.keys) & set(clean.keys)
    assert 0 < np.abs(np.asarray(made[7].picture).astype(int) - images[7]).max() < 40
    with pytest.raises(ConfigurationError, match=r"no file .*poisoned_cp\.pth.*cp, tap"):
        open_dataset("cifar10+cp", root=tmp_path)
    with pytest.raises(ConfigurationError, match=r"unknown dataset 'cifar10\+nonsense'"):
        open_dataset("cifar10+nonsense", root=tmp_path)


def test_a_copy_of_a_folder_elsewhere_draws_the_same_images(pictures, tmp_path):
    shutil.copytree(pictures, tmp_path / "copy/pictures")
    first, second = (open_dataset(str(path), root=tmp_path) for path in (pictures, tmp_path / "copy/pictures"))
    assert first.draw(3, seed=0) == second.draw(3, seed=0)
    assert first.name != second.name


def test_too_few_poisoned_images_and_broken_files_are_refused(tmp_path):
    (tmp_path / "cifar10").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "few.npz", images=255 - images[:4])
    for content, message in (({"pixels": images}, "can be read"), ({"images": images, "labels": np.arange(6)}, "")):
        np.savez(tmp_path / "cifar10/clean.npz", **content)
        with pytest.raises(rx.RepeatError, match=message or "4 poisoned images for 6"):
            open_dataset("cifar10" if message else f"cifar10+{tmp_path / 'few.npz'}", root=tmp_path)
    with pytest.raises(rx.RepeatError, match="unknown dataset 'cifar10\\+'"):
        open_dataset("cifar10+", root=tmp_path)


@pytest.mark.parametrize("file", ["clean.npz", "ar_coefficients.npy"])
def test_a_damaged_file_of_cifar_is_named_and_not_called_missing(tmp_path, file):
    folder = tmp_path / "cifar10"
    folder.mkdir()
    np.savez(folder / "clean.npz", images=np.zeros((2, 32, 32, 3), np.uint8), labels=np.arange(2))
    with pytest.raises(ConfigurationError, match=r"no file .*ar_coefficients\.npy"):
        open_dataset("cifar10+ar", root=tmp_path)
    (folder / file).write_bytes(b"damaged")
    with pytest.raises(ConfigurationError, match=rf"{file}: holds no .* that can be read") as refused:
        open_dataset("cifar10" if file == "clean.npz" else "cifar10+ar", root=tmp_path)
    assert "not found" not in str(refused.value)


def test_any_error_of_a_reader_names_the_image():
    def load(number):
        if number < 2:
            raise SyntaxError("broken PNG file (chunk b'abc')") if number else KeyError("no such thing")
        return Sample(picture=Path("none"), segmentation=np.ones((2, 2), dtype=bool))

    dataset = Dataset(name="spoilt", keys=["a", "b", "c"], load=load)
    with pytest.raises(rx.errors.ImageError, match=r"b: cannot be read \(broken PNG file \(chunk b'abc'\)\)"):
        dataset[1]
    assert dataset.has_segmentations
    assert not dataset_of(3).has_segmentations
    assert not Dataset(name="spoilt", keys=["a", "b"], load=load).has_segmentations


def test_a_broken_link_is_no_image(pictures):
    (pictures / "gone.jpg").symlink_to(pictures / "nowhere.jpg")
    assert len(open_dataset(str(pictures), root=pictures)) == 5


def test_every_dataset_is_registered_with_a_title_and_a_description():
    clean = ["voc", "coco", "eurosat", "fashionmnist", "cifar10"]
    assert list(DATASETS) == [*clean, "cifar10+cp", "cifar10+tap", "cifar10+ar", "cifar10+separable"]
    for dataset in DATASETS.values():
        assert dataset.title
        assert dataset.description.splitlines() == [dataset.description]


def test_captions_name_a_dataset_by_its_title():
    titles = [dataset_title(name) for name in ("coco", "cifar10+cp", "cifar10+a/mine.npz", "/a/cats", "a+b")]
    assert titles == ["MS-COCO", "CIFAR-10 under contrastive poisoning", "CIFAR-10 under mine", "cats", "a+b"]


@pytest.mark.parametrize("protocol", ["encoder", "paper"])
@pytest.mark.parametrize(("width", "height"), [(300, 200), (120, 260)])
def test_a_segmentation_is_resized_and_cropped_as_its_photo(protocol, width, height):
    """Paint a photo white where its segmentation is: as the encoder sees them, they still agree."""
    encoder = rx.load_encoder("torchvision:squeezenet1_1", weights="random", device="cpu")
    segmentation = np.zeros((height, width), dtype=bool)
    segmentation[height // 4 : height // 2, width // 3 : 2 * width // 3] = True
    picture = PIL.Image.fromarray(np.where(segmentation[..., None], 255, 0).astype(np.uint8).repeat(3, axis=2))
    image = rx.load_image(picture, encoder, protocol=protocol, name="painted")
    white = image.pixels[0] > (image.pixels[0].min() + image.pixels[0].max()) / 2
    seen = segmentation_to_image(segmentation, image)
    assert image.photo.name == "painted"
    assert (seen == white).double().mean() > 0.985
    assert seen.any()
    assert torch.equal(seen, segmentation_to_image(segmentation, image))


def test_a_segmentation_of_another_photo_is_refused(image):
    with pytest.raises(rx.RepeatError, match="not of a photo"):
        segmentation_to_image(np.zeros((3, 3), dtype=bool), image)


def test_a_dataset_is_called_by_its_name_without_folders():
    assert [dataset_name(name) for name in ("voc", "cifar10+tap", "/a/photos/", ".")] == [
        "voc",
        "cifar10+tap",
        "photos",
        ".",
    ]
