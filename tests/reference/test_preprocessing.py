"""Preprocessing compared with the transforms of torchvision and timm."""

import numpy as np
import PIL.Image
import pytest
import timm
import torch
import torchvision
from skimage import data

import repeat_xai as rx

PHOTOS = [data.coffee(), data.chelsea(), data.astronaut(), data.coffee().transpose(1, 0, 2).copy()]


@pytest.mark.slow
@pytest.mark.parametrize("photo", PHOTOS, ids=["landscape", "odd", "square", "portrait"])
@pytest.mark.parametrize("name", ["resnet18", "alexnet", "vit_b_32", "mobilenet_v3_small"])
def test_torchvision(name, photo):
    picture = PIL.Image.fromarray(photo)
    encoder = rx.load_encoder(f"torchvision:{name}", weights="random")
    theirs = torchvision.models.get_model_weights(name).DEFAULT.transforms()(picture)
    torch.testing.assert_close(rx.load_image(picture, encoder).pixels, theirs, atol=1e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("photo", PHOTOS, ids=["landscape", "odd", "square", "portrait"])
@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "tf_efficientnet_lite0"])
def test_timm(name, photo):
    picture = PIL.Image.fromarray(photo)
    encoder = rx.load_encoder(f"timm:{name}", weights="random")
    network = timm.create_model(name, pretrained=False)
    theirs = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network), is_training=False)(picture)
    torch.testing.assert_close(rx.load_image(picture, encoder).pixels, theirs, atol=1e-6, rtol=0)


def test_the_paper_protocol_is_a_square_resize():
    picture = PIL.Image.fromarray(data.coffee())
    encoder = rx.load_encoder("torchvision:resnet18", weights="random")
    square = np.asarray(picture.resize((224, 224), PIL.Image.Resampling.BILINEAR)).copy()
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    expected = ((torch.from_numpy(square) / 255 - mean) / std).permute(2, 0, 1)
    image = rx.load_image(picture, encoder, protocol="paper")
    torch.testing.assert_close(image.pixels, expected, atol=1e-6, rtol=0)
    assert image.photo.box == (0, 0, 600, 400)
