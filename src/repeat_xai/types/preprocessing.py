"""The preprocessing by which a photo becomes the input of an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final, get_args

import numpy as np
import PIL.Image
import torch

from repeat_xai.errors import ConfigurationError, ImageError, choose

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
"""Ways to compute the pixels of a resized picture, as Pillow names them."""


@final
@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """Preprocessing of photos for an encoder: resize, crop the centre, normalise each channel by (x − mean) / std.

    Encoders that are loaded by name bring their own. Give one to `load_encoder` for a module of your own, with the
    values it was trained with: a wrong mean or size changes the code, and with it the maps.

    >>> preprocessing = Preprocessing(size=(224, 224), resize=256, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    >>> preprocessing(PIL.Image.new("RGB", (640, 480), "white")).shape
    torch.Size([3, 224, 224])
    """

    size: tuple[int, int]
    """Height and width of the encoder's input, in pixels."""
    resize: int | tuple[int, int]
    """Size to which a photo is resized before the centre crop: the length of its shorter side, or a height and a width,
    which stretch or squeeze the photo."""
    interpolation: Interpolation = "bilinear"
    """How the photo is resized."""
    mean: tuple[float, ...]
    """Mean of each channel, for pixels from 0 to 1. One value means that the encoder takes grey images."""
    std: tuple[float, ...]
    """Standard deviation of each channel, for pixels from 0 to 1."""

    def __post_init__(self) -> None:
        choose("interpolation", self.interpolation, get_args(Interpolation))
        if len(self.mean) != len(self.std) or not self.mean or min(self.std) <= 0:
            raise ConfigurationError(f"mean {self.mean} and std {self.std} need a value per channel, std above zero")
        if min(self.size) < 1:
            raise ConfigurationError(f"size must be at least 1×1, not {self.size[0]}×{self.size[1]}")

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width to which a picture is resized before the crop.

        If `resize` is one number, the shorter side gets that length and the longer side follows in proportion, rounded
        down as in torchvision and timm.
        """
        if isinstance(self.resize, tuple):
            return self.resize
        short, long = min(height, width), max(height, width)
        longer = int(self.resize * long / short)
        return (self.resize, longer) if height <= width else (longer, self.resize)

    def crop_corner(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the top and left of the centre crop in a picture that is resized to these rows and columns."""
        bottom, right = self.size
        if rows < bottom or columns < right:
            raise ConfigurationError(f"cannot crop {right}×{bottom} from a picture resized to {columns}×{rows}")
        return round((rows - bottom) / 2), round((columns - right) / 2)

    def __call__(self, picture: PIL.Image.Image) -> Float[Tensor, "channels height width"]:
        """Return the encoder's input for a picture in RGB, or in grey of 8 bits or floats."""
        rows, columns = self.resized(picture.height, picture.width)
        top, left = self.crop_corner(rows, columns)
        small = picture.resize((columns, rows), PIL.Image.Resampling[self.interpolation.upper()])
        return self._normalised(small.crop((left, top, left + self.size[1], top + self.size[0])))

    def _normalised(self, picture: PIL.Image.Image) -> Float[Tensor, "channels height width"]:
        """Return a picture of the right size as a tensor, in as many channels as `mean` has values."""
        channels = len(self.mean)
        if channels not in (1, 3):
            raise ImageError(f"a photo cannot fill an encoder of {channels} channels; give a normalised tensor")
        if channels == 1 and picture.mode == "RGB":
            picture = picture.convert("L")
        values = torch.from_numpy(np.array(picture, dtype=np.float32))
        values = values if picture.mode == "F" else values / 255
        values = values.clamp(0, 1)[None] if values.ndim == 2 else values.permute(2, 0, 1)
        mean, std = (torch.tensor(v)[:, None, None] for v in (self.mean, self.std))
        return ((values.expand(channels, -1, -1) - mean) / std).contiguous()
