"""How a photo becomes what an encoder sees."""

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


@final
@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How a photo becomes what the encoder sees."""

    size: tuple[int, int]
    """Height and width of the input."""
    resize: int | tuple[int, int]
    """Before the centre crop to `size`: the shorter side, or height and width if the shape is not kept."""
    interpolation: Interpolation = "bilinear"
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        choose("interpolation", self.interpolation, get_args(Interpolation))
        if len(self.mean) != len(self.std) or not self.mean or min(self.std) <= 0:
            raise ConfigurationError(f"mean {self.mean} and std {self.std} need a value per channel, std above zero")
        if min(self.size) < 1:
            raise ConfigurationError(f"size must be at least 1×1, not {self.size[0]}×{self.size[1]}")

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return the size to which a picture is resized before the crop.

        Where the shape is kept, the shorter side is set and the longer one follows in proportion, as in torchvision
        and timm.
        """
        if isinstance(self.resize, tuple):
            return self.resize
        short, long = min(height, width), max(height, width)
        longer = int(self.resize * long / short)
        return (self.resize, longer) if height <= width else (longer, self.resize)

    def crop_corner(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the top and left of the centre crop in a picture resized to this size."""
        bottom, right = self.size
        if rows < bottom or columns < right:
            raise ConfigurationError(f"cannot crop {right}×{bottom} from a picture resized to {columns}×{rows}")
        return round((rows - bottom) / 2), round((columns - right) / 2)

    def __call__(self, picture: PIL.Image.Image) -> Float[Tensor, "channels height width"]:
        """Resize, crop and normalise a picture, given in RGB or in grey of any depth."""
        rows, columns = self.resized(picture.height, picture.width)
        top, left = self.crop_corner(rows, columns)
        small = picture.resize((columns, rows), PIL.Image.Resampling[self.interpolation.upper()])
        return self._normalised(small.crop((left, top, left + self.size[1], top + self.size[0])))

    def _normalised(self, picture: PIL.Image.Image) -> Float[Tensor, "channels height width"]:
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
