"""Which pixels are taken away together, where a method asks after parts of the image and not after pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.types import Image

if TYPE_CHECKING:
    from jaxtyping import Int

    Parts = Int[Tensor, "*channels height width"]


@runtime_checkable
class Features(Protocol):
    """The number of the part that each pixel belongs to."""

    def __call__(self, image: Image) -> Parts: ...


@final
@dataclass(frozen=True, kw_only=True)
class Squares:
    """A grid of cells, as many as RELAX's masks have."""

    cells: int = 7

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 1)

    def __call__(self, image: Image) -> Parts:
        height, width = image.pixels.shape[1:]
        rows, columns = (torch.arange(side) * min(self.cells, side) // side for side in (height, width))
        return rows[:, None] * min(self.cells, width) + columns


@final
@dataclass(frozen=True, kw_only=True)
class Superpixels:
    """Patches of like colour (SLIC, Achanta et al. 2012), about so many."""

    segments: int = 49
    compactness: float = 10.0

    def __post_init__(self) -> None:
        at_least("segments", self.segments, 1)
        if not self.compactness > 0:
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
    """Every value by itself, each channel of each pixel: what Captum does unless told otherwise."""

    def __call__(self, image: Image) -> Parts:
        return torch.arange(image.pixels.numel()).view(image.pixels.shape)


FEATURES: dict[str, Features] = {"squares": Squares(), "superpixels": Superpixels(), "values": Values()}


def parts_of(features: Features | Tensor, image: Image) -> Int[Tensor, "1 channels height width"]:
    """The parts, numbered from 0 without a gap, for each value of the image."""
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
        found = f"{parts.dtype} {list(parts.shape)}" if isinstance(parts, Tensor) else type(parts).__name__
        raise ConfigurationError(
            f"the features give {found}, not a whole number for each of {list(image.pixels.shape[1:])} pixels"
        )
    numbered: Tensor = torch.unique(parts, return_inverse=True)[1]
    if numbered.max() < 1:
        raise ConfigurationError("the features are a single part, which nothing can be compared with; give more")
    return numbered.expand(image.pixels.shape)[None]
