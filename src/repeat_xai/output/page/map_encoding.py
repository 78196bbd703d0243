"""Maps stored as 16-bit grey PNGs: a value is offset + scale × grey, and the whitest grey stands for a missing value.

The page decodes the PNGs in JavaScript of its own. A canvas would take less code, but it may convert colours, and
browsers that guard against fingerprinting change the values that are read back from it.
"""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, final

import numpy as np
import PIL.Image

if TYPE_CHECKING:
    from jaxtyping import Float, UInt16
    from torch import Tensor

MISSING_GREY = 65535
"""The grey of a value that is NaN or infinite."""
EXACT_DIGITS = 4
"""Digits after the point that are shown of values that are stored exactly."""


@final
@dataclass(frozen=True, kw_only=True)
class EncodedMap:
    """A map as the page stores it."""

    png: str
    """The grey picture as a data URL."""
    offset: float
    """The value of grey 0."""
    scale: float
    """The difference in value between two neighbouring greys."""
    digits: int
    """Digits after the point that the encoding keeps."""


def encoded(values: Float[Tensor, "height width"]) -> EncodedMap:
    """Return the map encoded to within half of 1/65,534 of its range.

    A map of few, evenly spaced values, such as shares of votes, is encoded exactly.
    """
    numbers = values.detach().cpu().numpy().astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    offset = float(finite.min()) if finite.size else 0.0
    scale, digits = _step(finite - offset)
    grey = np.full(numbers.shape, MISSING_GREY, np.uint16)
    grey[np.isfinite(numbers)] = np.round((finite - offset) / scale)
    return EncodedMap(png=_png_url(grey), offset=offset, scale=scale, digits=digits)


def _step(differences: Float[np.ndarray, " values"]) -> tuple[float, int]:
    """Return the difference in value between two neighbouring greys, and how many digits it keeps.

    `differences` are the values minus their minimum. If all are multiples of one step, as counts are, it is that step.
    """
    levels = np.unique(differences)
    if len(levels) < 2:
        return 1.0, EXACT_DIGITS
    span = float(levels[-1])
    finest = span / (MISSING_GREY - 1)
    counts = round(span / np.diff(levels).min()) if np.diff(levels).min() > finest else MISSING_GREY
    coarse = span / counts
    error = np.abs(np.round(levels / coarse) * coarse - levels).max()
    if counts < MISSING_GREY and error < finest / 4:
        return coarse, EXACT_DIGITS
    return finest, max(0, math.floor(-math.log10(finest)))


def _png_url(grey: UInt16[np.ndarray, "height width"]) -> str:
    file = BytesIO()
    PIL.Image.fromarray(grey).save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
