"""Maps → 16-bit grey PNGs: a value is offset + scale × grey, and the whitest grey stands for no value.

The page unpacks them itself. A canvas would be shorter to write, but it may convert colours, and browsers that guard
against fingerprinting disturb what is read back from one.
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

NOTHING = 65535
"""The grey of a value that is NaN or infinite."""
FEW_DIGITS = 4
"""For values that are carried exactly."""


@final
@dataclass(frozen=True, kw_only=True)
class Packed:
    """A map as the page carries it."""

    png: str
    """A data URL."""
    offset: float
    scale: float
    digits: int
    """After the point, that can be told."""


def packed(values: Float[Tensor, "height width"]) -> Packed:
    """The map, exact to half a step of 65,534 over its range, or exactly where its values are few and evenly spaced."""
    numbers = values.detach().cpu().numpy().astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    offset = float(finite.min()) if finite.size else 0.0
    scale, digits = _step(finite - offset)
    grey = np.full(numbers.shape, NOTHING, np.uint16)
    grey[np.isfinite(numbers)] = np.round((finite - offset) / scale)
    return Packed(png=_url(grey), offset=offset, scale=scale, digits=digits)


def _step(above: Float[np.ndarray, " values"]) -> tuple[float, int]:
    """What one level of grey is worth, where the values are counts of something one count; and the digits it allows."""
    levels = np.unique(above)
    if len(levels) < 2:
        return 1.0, FEW_DIGITS
    span = float(levels[-1])
    finest = span / (NOTHING - 1)
    counts = round(span / np.diff(levels).min()) if np.diff(levels).min() > finest else NOTHING
    coarse = span / counts
    missed = np.abs(np.round(levels / coarse) * coarse - levels).max()
    if counts < NOTHING and missed < finest / 4:
        return coarse, FEW_DIGITS
    return finest, max(0, math.floor(-math.log10(finest)))


def _url(grey: UInt16[np.ndarray, "height width"]) -> str:
    file = BytesIO()
    PIL.Image.fromarray(grey).save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"
