"""What an encoder must look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.types.images import Image
from repeat_xai.types.preprocessing import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float


@runtime_checkable
class Encoder(Protocol):
    """Images to codes, one code an image, with what a reader must know to make the same codes."""

    @property
    def name(self) -> str: ...
    @property
    def weights(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def preprocessing(self) -> Preprocessing: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def dtype(self) -> torch.dtype: ...
    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]: ...


def expect_encoder(encoder: object) -> None:
    """Refuse a bare module where an encoder is meant."""
    if not isinstance(encoder, Encoder):
        raise ConfigurationError(f"{type(encoder).__name__} is no encoder; make one with load_encoder")


def expect(encoder: object, image: object) -> None:
    """Refuse a bare module or a path where an encoder and an image are meant."""
    expect_encoder(encoder)
    if not isinstance(image, Image):
        raise ConfigurationError(f"{type(image).__name__} is no image; make one with load_image")
