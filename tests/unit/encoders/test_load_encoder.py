"""`load_encoder`: which names and options it takes, and which it refuses in one line."""

import pytest
import torch

import repeat_xai as rx
from repeat_xai.encoders.load_encoder import names
from repeat_xai.errors import ConfigurationError

batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))


def test_a_named_encoder_is_frozen_and_repeatable():
    first, second = (rx.load_encoder("torchvision:resnet18", weights="random") for _ in range(2))
    assert torch.equal(first(batch), second(batch))
    assert not any(p.requires_grad for p in first.module.parameters())
    assert not first.module.training


def test_loading_leaves_the_global_generator_as_it_was():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    rx.load_encoder("timm:resnet18", weights="random")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("resnet5", "torchvision:resnet50"),
        ("torchvision:resnet51", "torchvision:resnet50"),
        ("timm:vit_smal_patch16_224", "timm:vit_small_patch16_224"),
        ("efficientnet_lite", "efficientnet_lite0"),
        ("keras:x", "torchvision:NAME"),
        ("torchvision:", "torchvision:NAME"),
        ("onnx:", "onnx:FILE"),
    ],
)
def test_an_unknown_name_is_wrong_usage_and_brings_the_nearest(name, near):
    with pytest.raises(ConfigurationError, match=f"unknown encoder '{name}'.*{near}"):
        rx.load_encoder(name)


@pytest.mark.parametrize(
    "options",
    [
        {"device": "tpu"},
        {"device": "cuda:99"},
        {"pool": "nonsense"},
        {"pool": "cls"},
        {"weights": "file.pth"},
        {"name": "mine"},
        {"preprocessing": rx.Preprocessing(size=(8, 8), resize=8, mean=(0.0,), std=(1.0,))},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(rx.RepeatError):
        rx.load_encoder("efficientnet_lite0", **options)(batch)


def test_every_name_is_listed_once():
    assert len(names()) == len(set(names())) > 1000
    assert {"efficientnet_lite0", "torchvision:resnet50", "timm:vit_base_patch16_224"} <= set(names())


def test_size_changes_the_input_and_the_position_table():
    encoder = rx.load_encoder("timm:vit_tiny_patch16_224", weights="random", size=96)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((96, 96), 106)
    assert encoder(torch.randn(1, 3, 96, 96)).shape == (1, 192)
    encoder = rx.load_encoder("torchvision:resnet18", weights="random", size=112)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((112, 112), 128)


OBLONG = rx.Preprocessing(size=(96, 128), resize=(96, 128), mean=(0.5,) * 3, std=(0.25,) * 3)
SQUARE = rx.Preprocessing(size=(96, 96), resize=120, mean=(0.5,) * 3, std=(0.25,) * 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "preprocessing"),
    [
        ("torchvision:resnet18", OBLONG),
        ("torchvision:vit_b_32", SQUARE),
        ("timm:resnet18", OBLONG),
        ("timm:vit_tiny_patch16_224", OBLONG),
    ],
)
def test_a_preprocessing_replaces_that_of_a_named_encoder(name, preprocessing):
    """A vision transformer is built for images of that size."""
    encoder = rx.load_encoder(name, weights="random", preprocessing=preprocessing)
    image = rx.load_image(torch.zeros(3, *preprocessing.size), encoder)
    assert encoder.preprocessing == preprocessing
    assert encoder(image.pixels[None]).isfinite().all()


def test_a_preprocessing_leaves_the_embedded_encoders_network_as_it_is():
    encoder = rx.load_encoder("efficientnet_lite0", preprocessing=OBLONG, device="cpu")
    images = torch.randn(1, 3, 96, 128, generator=torch.Generator().manual_seed(0))
    assert encoder.preprocessing == OBLONG
    assert torch.equal(encoder(images), rx.load_encoder("efficientnet_lite0", device="cpu")(images))


def test_a_size_changes_the_preprocessing_that_is_given():
    encoder = rx.load_encoder("timm:vit_tiny_patch16_224", weights="random", preprocessing=SQUARE, size=48)
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((48, 48), 60)
    assert encoder.preprocessing.mean == SQUARE.mean


@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18", "efficientnet_lite0"])
def test_a_preprocessing_of_other_channels_is_refused(name):
    grey = rx.Preprocessing(size=(96, 96), resize=120, mean=(0.5,), std=(0.25,))
    with pytest.raises(ConfigurationError, match="3 channels"):
        rx.load_encoder(name, preprocessing=grey, **({} if ":" not in name else {"weights": "random"}))


def test_torchvisions_transformers_take_square_images_only():
    with pytest.raises(ConfigurationError, match="square images"):
        rx.load_encoder("torchvision:vit_b_32", weights="random", preprocessing=OBLONG)
