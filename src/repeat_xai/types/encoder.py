"""The protocol that every encoder fulfils, and checks of what a method is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.types.photo import Image
from repeat_xai.types.preprocessing import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float


@runtime_checkable
class Encoder(Protocol):
    """A function from preprocessed images to codes, one vector for each image, with a description of itself.

    `load_encoder` makes encoders from names, files and modules. Any class with these members will do as well.
    """

    @property
    def name(self) -> str:
        """Name under which the encoder can be loaded again, or that of its class."""
        ...

    @property
    def weights(self) -> str:
        """Description of its weights, for example a digest: equal descriptions must mean equal weights."""
        ...

    @property
    def pool(self) -> str:
        """Name of the tensor that is the code, for example `avg` or `cls`."""
        ...

    @property
    def preprocessing(self) -> Preprocessing:
        """How photos are resized, cropped and normalised for it."""
        ...

    @property
    def device(self) -> torch.device:
        """Device that the images must be on."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """Type of number that the images must have."""
        ...

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]:
        """Return the codes of a batch of preprocessed images."""
        ...


def expect_encoder(encoder: object) -> None:
    """Raise a ConfigurationError unless this is an encoder: a bare `nn.Module` is not one."""
    if not isinstance(encoder, Encoder):
        raise ConfigurationError(f"{type(encoder).__name__} is no encoder; make one with load_encoder")


def expect(encoder: object, image: object) -> None:
    """Raise a ConfigurationError unless these are an encoder and an image: a module and a path are not."""
    expect_encoder(encoder)
    if not isinstance(image, Image):
        raise ConfigurationError(f"{type(image).__name__} is no image; make one with load_image")
