"""Small encoders and images that every test can afford."""

from pathlib import Path

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.types import Image

MARKERS = {"browser": "browser", "docs": "slow", "hostile": "slow", "real": "slow"}
"""A marker for all tests in a folder, by which `make quick` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests in a folder of `MARKERS` its marker."""
    for item in items:
        places = item.path.relative_to(Path(__file__).parent.parent).parts
        if places[0] == "tests" and places[1] in MARKERS:
            item.add_marker(MARKERS[places[1]])


def small_network(seed: int = 0) -> nn.Module:
    """A convolution deep enough to care where things are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2),
            nn.ReLU(),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )


@pytest.fixture
def network() -> nn.Module:
    return small_network()


@pytest.fixture
def encoder(network: nn.Module) -> TorchEncoder:
    """In double precision, so that nothing but the formula decides."""
    return rx.load_encoder(network.double().eval())


@pytest.fixture
def image(encoder: TorchEncoder) -> Image:
    """24×20 pixels with a bright spot off centre."""
    pixels = torch.rand(3, 24, 20, generator=torch.Generator().manual_seed(1)) - 0.5
    pixels[:, 4:12, 10:18] += 2
    return rx.load_image(pixels, encoder)
