"""Photos and colours as the page carries them: small, and as data URLs."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import PIL.Image
from matplotlib import colormaps

from repeat_xai.output.map_scales import IMPORTANCE, SIGNED, UNCERTAINTY, VERDICT_COLOURS
from repeat_xai.types import Photo

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8
    from torch import Tensor

THUMBNAIL = 128
"""Height in pixels."""
QUALITY = 82


def colour_tables() -> dict[str, str]:
    """Red, green and blue of every colour of every scale, as base64 of bytes."""
    scales = {name: colormaps[name] for name in (IMPORTANCE, UNCERTAINTY, SIGNED)} | {"verdict": VERDICT_COLOURS}
    return {
        name: b64encode((scale(np.arange(scale.N))[:, :3] * 255).round().astype(np.uint8).tobytes()).decode()
        for name, scale in scales.items()
    }


def photo_url(photo: Photo, *, longest: int) -> str:
    """The photo to lay maps over."""
    picture = PIL.Image.fromarray(photo.picture)
    picture.thumbnail((longest, longest))
    return _url(picture)


def thumbnail_url(
    photo: Photo, values: Float[Tensor, "height width"], colours: str, limits: tuple[float, float]
) -> str:
    """What the encoder sees of the photo, and beside it the map."""
    rows, columns = photo.picture.shape[:2]
    height, width = photo.size
    left, top, right, bottom = photo.box
    wide = min(max(round(THUMBNAIL * (right - left) / (bottom - top)), THUMBNAIL // 3), 3 * THUMBNAIL)
    seen = (left * columns / width, top * rows / height, right * columns / width, bottom * rows / height)
    pair = PIL.Image.new("RGB", (2 * wide, THUMBNAIL))
    for place, picture, box in ((0, photo.picture, seen), (wide, _painted(values, colours, limits), None)):
        small = PIL.Image.fromarray(picture).resize((wide, THUMBNAIL), PIL.Image.Resampling.BILINEAR, box)
        pair.paste(small, (place, 0))
    return _url(pair)


def _painted(
    values: Float[Tensor, "height width"], colours: str, limits: tuple[float, float]
) -> UInt8[np.ndarray, "height width 3"]:
    low, high = limits
    share = ((values - low) / max(high - low, 1e-12)).clamp(0, 1).numpy()
    painted: np.ndarray = (colormaps[colours](share)[..., :3] * 255).round().astype(np.uint8)
    return painted


def _url(picture: PIL.Image.Image) -> str:
    file = BytesIO()
    picture.save(file, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{b64encode(file.getvalue()).decode()}"
