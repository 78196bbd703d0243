"""Picture → tensor, by the encoder's own preprocessing, and maps → back onto the photo."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import PIL.Image
import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.data.decoding import check_side, decode_file, decode_picture, refusing
from repeat_xai.errors import ConfigurationError, ImageError, choose
from repeat_xai.types import Encoder, Image, Photo, Preprocessing, expect_encoder

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.types import Map

Protocol = Literal["encoder", "paper"]
Source = str | Path | PIL.Image.Image | np.ndarray | Tensor

SIDE = 224
"""Of the paper's square images."""
LARGEST_DRAWING = 1024
MOST_PIXELS = 50_000_000
"""How large a photo may get on its way to the encoder: one of ordinary shape never does."""


def load_image(source: Source, encoder: Encoder, *, protocol: Protocol = "encoder", name: str | None = None) -> Image:
    """Make a photo ready for `encoder`, and call it `name`, if that is not the path.

    A path or a Pillow image is a photo; an array is one too, as [h, w] or [h, w, 3], uint8 or floats in [0, 1]. A
    tensor [channels, height, width] is taken as already normalised. The protocol `paper` squeezes to 224×224 without
    a crop; `encoder` does what the encoder was trained with.
    """
    choose("protocol", protocol, get_args(Protocol))
    expect_encoder(encoder)
    if isinstance(source, Tensor):
        if protocol == "paper":
            raise ConfigurationError("a tensor is taken as it is; the paper's protocol is for photos")
        return _from_tensor(source, encoder.preprocessing)
    if isinstance(source, str | Path):
        name = name or str(source)
        picture, digest = decode_file(Path(source), name)
    elif isinstance(source, PIL.Image.Image | np.ndarray):
        name = name or "image"
        picture, digest = decode_picture(_from_array(name, source) if isinstance(source, np.ndarray) else source, name)
    else:
        raise ImageError(f"an image is a path, a Pillow image, an array or a tensor, not {type(source).__name__}")
    with refusing(name):
        return _prepare(name, digest, picture, _protocol(encoder.preprocessing, protocol))


def map_to_photo(values: Map, photo: Photo) -> Float[Tensor, "rows columns"]:
    """Bring a map back to the photo's own size; NaN where the encoder did not look."""
    height, width = photo.size
    left, top, right, bottom = photo.box
    columns, rows = (torch.arange(n, dtype=torch.float64, device=values.device) + 0.5 for n in (width, height))
    x = (columns - left) / (right - left) * 2 - 1
    y = (rows - top) / (bottom - top) * 2 - 1
    places = torch.stack((x.expand(height, width), y[:, None].expand(height, width)), -1)[None]
    smooth = F.grid_sample(
        values.double()[None, None], places, mode="bilinear", padding_mode="border", align_corners=False
    )
    unseen = (places.abs() > 1).any(-1)
    return smooth.masked_fill(unseen[None], torch.nan)[0, 0].to(values.dtype)


def mask_to_image(mask: Bool[np.ndarray, "rows columns"], image: Image) -> Bool[Tensor, "height width"]:
    """What the encoder sees of a mask of the photo: of each pixel, what lies at its centre."""
    rows, columns = image.photo.size
    if mask.shape != (rows, columns):
        raise ImageError(f"{image.photo.name}: a mask of {mask.shape} pixels is not of a photo of {(rows, columns)}")
    left, top, right, bottom = image.photo.box
    height, width = image.pixels.shape[1:]
    y = top + (np.arange(height) + 0.5) * (bottom - top) / height
    x = left + (np.arange(width) + 0.5) * (right - left) / width
    return torch.from_numpy(mask[np.ix_(y.astype(int).clip(0, rows - 1), x.astype(int).clip(0, columns - 1))])


def _from_array(name: str, array: np.ndarray) -> PIL.Image.Image:
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ImageError(f"an array must be [h, w] or [h, w, 3], not {list(array.shape)}")
    check_side(name, array.shape[1], array.shape[0])
    if array.dtype == np.uint8:
        return PIL.Image.fromarray(array)
    if array.dtype == np.uint16 and array.ndim == 2:
        return PIL.Image.fromarray(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise ImageError(f"an array must hold uint8 or floats in [0, 1], not {array.dtype}")
    if not np.isfinite(array).all():
        raise ImageError("the array has NaN or infinite pixels; mend or fill them first")
    if array.min() < 0 or array.max() > 1:
        raise ImageError(f"a float array must lie in [0, 1], not [{array.min():.3g}, {array.max():.3g}]")
    if array.ndim == 2:
        return PIL.Image.fromarray(array.astype(np.float32))
    return PIL.Image.fromarray(np.round(array * 255).astype(np.uint8))


def _from_tensor(pixels: Tensor, preprocessing: Preprocessing) -> Image:
    if pixels.ndim != 3 or not pixels.is_floating_point():
        raise ImageError(
            f"a tensor must be floats [channels, height, width], not {pixels.dtype} {list(pixels.shape)}; "
            "give uint8 pictures as arrays"
        )
    if not pixels.isfinite().all():
        raise ImageError("the tensor has NaN or infinite pixels; mend or fill them first")
    pixels = pixels.detach().to("cpu", torch.float32).contiguous()
    height, width = pixels.shape[1:]
    check_side("tensor", width, height)
    mean, std = (torch.tensor(v)[:, None, None] for v in (preprocessing.mean, preprocessing.std))
    colours = (pixels * std + mean).clamp(0, 1) if len(mean) == len(pixels) else _stretched(pixels)
    colours = colours if len(colours) == 3 else colours.mean(0, keepdim=True).expand(3, -1, -1)
    photo = Photo(
        name="tensor",
        picture=(colours * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy(),
        size=(height, width),
        box=(0.0, 0.0, float(width), float(height)),
        digest=hashlib.sha256(repr(tuple(pixels.shape)).encode() + pixels.numpy().tobytes()).hexdigest(),
    )
    return Image(pixels=pixels, preprocessing=None, photo=photo)


def _stretched(pixels: Tensor) -> Tensor:
    low, high = pixels.aminmax()
    return (pixels - low) / (high - low).clamp_min(1e-12)


def _protocol(preprocessing: Preprocessing, protocol: Protocol) -> Preprocessing:
    if protocol == "paper":
        return replace(preprocessing, size=(SIDE, SIDE), resize=(SIDE, SIDE), interpolation="bilinear")
    return preprocessing


def _prepare(name: str, digest: str, picture: PIL.Image.Image, how: Preprocessing) -> Image:
    width, height = picture.size
    rows, columns = how.resized(height, width)
    y, x = how.crop_corner(rows, columns)
    bottom, right = how.size
    if rows * columns > MOST_PIXELS:
        raise ImageError(f"{name}: {width}×{height} pixels is too long and thin; crop it first")
    photo = Photo(
        name=name,
        picture=_drawing(picture),
        size=(height, width),
        box=(x * width / columns, y * height / rows, (x + right) * width / columns, (y + bottom) * height / rows),
        digest=digest,
    )
    return Image(pixels=how(picture), preprocessing=how, photo=photo)


def _drawing(picture: PIL.Image.Image) -> np.ndarray:
    small = picture.copy()
    small.thumbnail((LARGEST_DRAWING, LARGEST_DRAWING))
    values = np.asarray(small)
    if small.mode == "F":
        values = np.round(values.clip(0, 1) * 255).astype(np.uint8)[..., None].repeat(3, axis=2)
    return np.ascontiguousarray(values)
