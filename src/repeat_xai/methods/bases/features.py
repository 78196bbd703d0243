"""Features divide an image into parts, for methods that hide whole parts and not single pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, expect_number
from repeat_xai.types import Image

if TYPE_CHECKING:
    from jaxtyping import Int

    Parts = Int[Tensor, "*channels height width"]


@runtime_checkable
class Features(Protocol):
    """A way to divide an image into parts."""

    def __call__(self, image: Image) -> Parts:
        """Return the number of the part that each pixel, or each value, belongs to."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class Squares:
    """A grid of squares, by default as many as the cells of RELAX's masks."""

    cells: int = 7
    """Squares per side."""

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)

    def __call__(self, image: Image) -> Parts:
        height, width = image.pixels.shape[1:]
        rows, columns = (torch.arange(side) * min(self.cells, side) // side for side in (height, width))
        return rows[:, None] * min(self.cells, width) + columns


@final
@dataclass(frozen=True, kw_only=True)
class Superpixels:
    """Patches of similar colour (SLIC, Achanta et al. 2012)."""

    segments: int = 49
    """Approximate number of patches."""
    compactness: float = 10.0
    """Weight of nearness against colour: higher values give squarer patches."""

    def __post_init__(self) -> None:
        at_least("segments", self.segments, 1)
        expect_number("compactness", self.compactness)
        if self.compactness <= 0:
            raise ConfigurationError(f"compactness must be above zero, not {self.compactness}")

    def __call__(self, image: Image) -> Parts:
        from skimage.segmentation import slic

        low, high = image.pixels.aminmax()
        colours = ((image.pixels - low) / (high - low).clamp_min(1e-12)).permute(1, 2, 0).double().numpy()
        parts = slic(colours, n_segments=self.segments, compactness=self.compactness, start_label=0, channel_axis=-1)
        return torch.from_numpy(np.ascontiguousarray(parts))


@final
@dataclass(frozen=True, kw_only=True)
class Values:
    """Every value by itself, that is each channel of each pixel, as Captum does by default."""

    def __call__(self, image: Image) -> Parts:
        return torch.arange(image.pixels.numel()).view(image.pixels.shape)


FEATURES: dict[str, Features] = {"squares": Squares(), "superpixels": Superpixels(), "values": Values()}


def parts_of(features: Features | Tensor, image: Image) -> Int[Tensor, "1 channels height width"]:
    """Return the part of each value of the image, numbered from 0 without gaps."""
    parts = features.detach().cpu() if isinstance(features, Tensor) else features(image)
    if (
        not isinstance(parts, Tensor)
        or parts.is_floating_point()
        or parts.shape
        not in (
            image.pixels.shape,
            image.pixels.shape[1:],
        )
    ):
        given = f"{parts.dtype} {list(parts.shape)}" if isinstance(parts, Tensor) else type(parts).__name__
        raise ConfigurationError(
            f"the features give {given}, not a whole number for each of {list(image.pixels.shape[1:])} pixels"
        )
    numbered: Tensor = torch.unique(parts, return_inverse=True)[1]
    if numbered.max() < 1:
        raise ConfigurationError("the features are a single part, so there is nothing to compare; give more")
    return numbered.expand(image.pixels.shape)[None]
