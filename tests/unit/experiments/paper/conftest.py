"""Fixtures for the figures: a tiny network, and a few images of every dataset."""

import numpy as np
import PIL.Image
import pytest
import torch
from drawings import TINY
from skimage import data
from torch import nn

import repeat_xai as rx
from repeat_xai.errors import EncoderError
from repeat_xai.experiments import settings


@pytest.fixture
def tiny(monkeypatch):
    """A network small enough for the paper's 224×224 pixels."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 16, stride=16), nn.ReLU(), nn.Conv2d(8, 12, 3), nn.ReLU(), nn.Flatten())
    preprocessing = rx.Preprocessing(size=(224, 224), resize=224, mean=(0.5,) * 3, std=(0.5,) * 3)

    def load(name, **_):
        if name != TINY.name:
            raise EncoderError(f"unknown encoder '{name}'")
        return rx.load_encoder(module.eval(), preprocessing=preprocessing)

    monkeypatch.setattr(settings, "load_encoder", load)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a data folder with photos, satellite images, and CIFAR-10 clean and poisoned."""
    root = tmp_path_factory.mktemp("data")
    pixels = np.random.default_rng(0)
    for name, pictures in (("photos", (data.chelsea(), data.coffee())), ("fields", pixels.bytes(2 * 64 * 64 * 3))):
        (root / name).mkdir()
        arrays = np.frombuffer(pictures, np.uint8).reshape(2, 64, 64, 3) if isinstance(pictures, bytes) else pictures
        for number, picture in enumerate(arrays):
            PIL.Image.fromarray(picture).resize((60, 40)).save(root / name / f"{number}.png")
    (root / "cifar10").mkdir()
    images = pixels.integers(30, 220, (12, 32, 32, 3), dtype=np.uint8)
    noise = pixels.choice(np.array([-8, 8]), images.shape)
    labels = np.arange(12) % 10
    np.savez(root / "cifar10/clean.npz", images=images, labels=labels)
    np.savez(root / "cifar10/poisoned_tap.npz", images=(images + noise).astype(np.uint8), labels=labels)
    return root
