"""Photos, thumbnails and colour tables in the form in which the page stores them."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import PIL.Image
from matplotlib import colormaps

from repeat_xai.output.figures.map_drawing import IMPORTANCE, SIGNED, UNCERTAINTY, VERDICT_COLOURS
from repeat_xai.types import Photo

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8
    from torch import Tensor

THUMBNAIL_HEIGHT = 128
"""Height of a thumbnail, in pixels."""
WEBP_QUALITY = 82
NO_MAP_COLOUR = "#808080"


def colour_tables() -> dict[str, str]:
    """Return red, green and blue of every colour of every colour scale, as base64 of bytes."""
    scales = {name: colormaps[name] for name in (IMPORTANCE, UNCERTAINTY, SIGNED)} | {"verdict": VERDICT_COLOURS}
    return {
        name: b64encode((scale(np.arange(scale.N))[:, :3] * 255).round().astype(np.uint8).tobytes()).decode()
        for name, scale in scales.items()
    }


def photo_url(photo: Photo, *, longest: int) -> str:
    """Return the photo as a data URL, its longer side reduced to at most this many pixels."""
    picture = PIL.Image.fromarray(photo.picture)
    picture.thumbnail((longest, longest))
    return _webp_url(picture)


def thumbnail_url(
    photo: Photo, values: Float[Tensor, "height width"] | None, colours: str, limits: tuple[float, float]
) -> str:
    """Return, as a data URL, the part of the photo that the encoder sees, beside the map or beside grey without one."""
    rows, columns = photo.picture.shape[:2]
    height, width = photo.size
    left, top, right, bottom = photo.box
    tile_width = round(THUMBNAIL_HEIGHT * (right - left) / (bottom - top))
    tile_width = min(max(tile_width, THUMBNAIL_HEIGHT // 3), 3 * THUMBNAIL_HEIGHT)
    seen = (left * columns / width, top * rows / height, right * columns / width, bottom * rows / height)
    pair = PIL.Image.new("RGB", (2 * tile_width, THUMBNAIL_HEIGHT), NO_MAP_COLOUR)
    tiles: list[tuple[int, np.ndarray, tuple[float, float, float, float] | None]] = [(0, photo.picture, seen)]
    if values is not None:
        tiles.append((tile_width, _coloured(values, colours, limits), None))
    for place, picture, box in tiles:
        tile = PIL.Image.fromarray(picture).resize((tile_width, THUMBNAIL_HEIGHT), PIL.Image.Resampling.BILINEAR, box)
        pair.paste(tile, (place, 0))
    return _webp_url(pair)


def _coloured(
    values: Float[Tensor, "height width"], colours: str, limits: tuple[float, float]
) -> UInt8[np.ndarray, "height width 3"]:
    """Return the map as a picture in these colours."""
    low, high = limits
    share = ((values - low) / max(high - low, 1e-12)).clamp(0, 1).numpy()
    picture: np.ndarray = (colormaps[colours](share)[..., :3] * 255).round().astype(np.uint8)
    return picture


def _webp_url(picture: PIL.Image.Image) -> str:
    file = BytesIO()
    picture.save(file, "WEBP", quality=WEBP_QUALITY)
    return f"data:image/webp;base64,{b64encode(file.getvalue()).decode()}"
