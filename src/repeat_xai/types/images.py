"""A photo, and a photo made ready for one encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
from torch import Tensor

from repeat_xai.types.preprocessing import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8

MOST_SIDE = 4096
"""Pixels of a side of an encoder's square input."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Photo:
    """The picture as a person sees it, and which part of it the encoder sees."""

    name: str
    picture: UInt8[np.ndarray, "rows columns 3"] = field(repr=False)
    """To draw on; a large photo is held smaller."""
    size: tuple[int, int]
    """The photo's own height and width."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom of the part the encoder sees, in the photo's own pixels."""
    digest: str
    """SHA-256 of the content: what the image's random masks are drawn from."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Image:
    """A photo made ready for one encoder."""

    pixels: Float[Tensor, "channels height width"] = field(repr=False)
    """Normalised, so that zero is the mean colour."""
    preprocessing: Preprocessing | None
    """What made the pixels of the photo; None where they came as they are."""
    photo: Photo
