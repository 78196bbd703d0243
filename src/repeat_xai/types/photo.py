"""The classes of a photo, and of an image that is preprocessed for one encoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
from torch import Tensor

from repeat_xai.types.preprocessing import Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8

MOST_SIDE = 4096
"""Longest side of an encoder's input, in pixels."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Photo:
    """A photo as a person sees it, and the part of it that the encoder sees.

    It is kept beside the maps, so that they can be drawn on the photo and traced back to it.
    """

    name: str
    """Name in results and errors: the path of the file, if not given otherwise. It does not influence the maps."""
    picture: UInt8[np.ndarray, "rows columns 3"] = field(repr=False)
    """Picture to draw maps on. Its longer side has at most 1024 pixels, so it may be smaller than the photo."""
    size: tuple[int, int]
    """Height and width of the photo itself, in pixels, after it is turned upright."""
    box: tuple[float, float, float, float]
    """Left, top, right and bottom of the part that the encoder sees, in pixels of the photo: a map covers this box."""
    digest: str
    """SHA-256 of the content. Random masks are drawn from it and the seed, so a renamed photo gets the same maps."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Image:
    """An image that is preprocessed for one encoder; `load_image` makes it."""

    pixels: Float[Tensor, "channels height width"] = field(repr=False)
    """Pixels as the encoder takes them: resized, cropped and normalised. Zero is the mean colour, which fills masks."""
    preprocessing: Preprocessing | None
    """Preprocessing that made the pixels from the photo; None if they were given as a tensor."""
    photo: Photo
    """The photo that the pixels were made from."""
