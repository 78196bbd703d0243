"""Functions that turn images into tensors for an encoder, and maps back into the shape of the photo."""

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

from repeat_xai.data.decoding import decode_file, decode_picture, expect_large_enough, naming_errors
from repeat_xai.errors import ConfigurationError, ImageError, choose
from repeat_xai.types import Encoder, Image, Photo, Preprocessing, expect_encoder

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.types import Map

ImageProtocol = Literal["encoder", "paper"]
"""Preprocessing of photos: the encoder's own, or the paper's, which squeezes them to 224×224 pixels without a crop."""
ImageSource = str | Path | PIL.Image.Image | np.ndarray | Tensor
"""The types that an image can be loaded from."""

PAPER_SIDE = 224
"""Side of the paper's square images, in pixels."""
MAX_DRAWING_SIDE = 1024
"""Longer side of the picture that maps are drawn on, in pixels: larger photos are kept smaller, to save memory."""
MAX_RESIZED_PIXELS = 50_000_000
"""Pixels that a photo may have after it is resized for the encoder: only a very long and thin one reaches this."""


def load_image(
    source: ImageSource, encoder: Encoder, *, protocol: ImageProtocol = "encoder", name: str | None = None
) -> Image:
    """Load an image and preprocess it for an encoder.

    Args:
        source: One of these:

            - the path of an image file: JPEG, PNG, WebP, BMP, TIFF or another format of photos that Pillow reads. A
              photo is turned upright by its EXIF tag, and transparent parts become white. Grey pictures of 16 bits or
              of floats keep all their levels.
            - a Pillow image.
            - an array [height, width, 3] or [height, width] in uint8, in floats from 0 to 1, or in uint16 if grey.
            - a tensor [channels, height, width] of floats, which is taken as preprocessed already and stays as it is.
              Images of any number of channels other than one or three are given so.
        encoder: The encoder that the image is for, from `load_encoder`. Its preprocessing says how a photo is resized,
            cropped and normalised.
        protocol: `"encoder"` preprocesses a photo as the encoder was trained. `"paper"` squeezes every photo to 224×224
            pixels without a crop, as the paper does, and normalises it as the encoder was trained.
        name: Name of the image in results and errors, by default its path, `image` or `tensor`. It does not influence
            the maps.

    Returns:
        The pixels for the encoder, with the photo that they were made from.

    Raises:
        ImageError: The source cannot be read, is damaged, too large or smaller than 8×8 pixels.
        ConfigurationError: The encoder is not one, or the protocol does not exist or does not fit the source.
    """
    choose("protocol", protocol, get_args(ImageProtocol))
    expect_encoder(encoder)
    if isinstance(source, Tensor):
        if protocol == "paper":
            raise ConfigurationError("the paper's protocol is for photos; a tensor is preprocessed already")
        return _from_tensor(source, encoder.preprocessing, name or "tensor")
    if isinstance(source, str | Path):
        name = name or str(source)
        picture, digest = decode_file(Path(source), name)
    elif isinstance(source, PIL.Image.Image | np.ndarray):
        name = name or "image"
        picture, digest = decode_picture(_from_array(name, source) if isinstance(source, np.ndarray) else source, name)
    else:
        raise ImageError(f"an image is a path, a Pillow image, an array or a tensor, not {type(source).__name__}")
    with naming_errors(name):
        return _prepare(name, digest, picture, _preprocessing(encoder, protocol))


def map_to_photo(values: Map, photo: Photo) -> Float[Tensor, "rows columns"]:
    """Resize a map bilinearly to the photo's own size, with NaN where the encoder does not see the photo.

    The result lies on the photo pixel by pixel, so it can be drawn over it or compared with a segmentation of it.
    """
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


def segmentation_to_image(segmentation: Bool[np.ndarray, "rows columns"], image: Image) -> Bool[Tensor, "height width"]:
    """Return the part of a photo's segmentation that the encoder sees, by its value at the centre of each pixel."""
    rows, columns = image.photo.size
    if segmentation.shape != (rows, columns):
        raise ImageError(
            f"{image.photo.name}: a segmentation of {segmentation.shape} pixels is not of a photo of {(rows, columns)}"
        )
    left, top, right, bottom = image.photo.box
    height, width = image.pixels.shape[1:]
    y = top + (np.arange(height) + 0.5) * (bottom - top) / height
    x = left + (np.arange(width) + 0.5) * (right - left) / width
    return torch.from_numpy(segmentation[np.ix_(y.astype(int).clip(0, rows - 1), x.astype(int).clip(0, columns - 1))])


def _from_array(name: str, array: np.ndarray) -> PIL.Image.Image:
    """Return an array as a Pillow image: floats of one channel as floats, of three channels in 8 bits."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ImageError(f"an array must be [h, w] or [h, w, 3], not {list(array.shape)}")
    expect_large_enough(name, array.shape[1], array.shape[0])
    if array.dtype == np.uint8:
        return PIL.Image.fromarray(array)
    if array.dtype == np.uint16 and array.ndim == 2:
        return PIL.Image.fromarray(array)
    if not np.issubdtype(array.dtype, np.floating):
        raise ImageError(f"an array must hold uint8 or floats in [0, 1], not {array.dtype}")
    if not np.isfinite(array).all():
        raise ImageError("the array has NaN or infinite pixels; repair or fill them first")
    if array.min() < 0 or array.max() > 1:
        raise ImageError(f"a float array must lie in [0, 1], not [{array.min():.3g}, {array.max():.3g}]")
    if array.ndim == 2:
        return PIL.Image.fromarray(array.astype(np.float32))
    return PIL.Image.fromarray(np.round(array * 255).astype(np.uint8))


def _from_tensor(pixels: Tensor, preprocessing: Preprocessing, name: str) -> Image:
    """Return an Image with these pixels, and a picture of them to draw maps on."""
    if pixels.ndim != 3 or not pixels.is_floating_point():
        raise ImageError(
            f"a tensor must be floats [channels, height, width], not {pixels.dtype} {list(pixels.shape)}; "
            "give uint8 pictures as arrays"
        )
    if not pixels.isfinite().all():
        raise ImageError("the tensor has NaN or infinite pixels; repair or fill them first")
    pixels = pixels.detach().to("cpu", torch.float32).contiguous()
    height, width = pixels.shape[1:]
    expect_large_enough(name, width, height)
    mean, std = (torch.tensor(v)[:, None, None] for v in (preprocessing.mean, preprocessing.std))
    colours = (pixels * std + mean).clamp(0, 1) if len(mean) == len(pixels) else _stretch(pixels)
    colours = colours if len(colours) == 3 else colours.mean(0, keepdim=True).expand(3, -1, -1)
    photo = Photo(
        name=name,
        picture=(colours * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy(),
        size=(height, width),
        box=(0.0, 0.0, float(width), float(height)),
        digest=hashlib.sha256(repr(tuple(pixels.shape)).encode() + pixels.numpy().tobytes()).hexdigest(),
    )
    return Image(pixels=pixels, preprocessing=None, photo=photo)


def _stretch(pixels: Tensor) -> Tensor:
    """Return pixels of an unknown scale stretched to [0, 1]."""
    low, high = pixels.aminmax()
    return (pixels - low) / (high - low).clamp_min(1e-12)


def _preprocessing(encoder: Encoder, protocol: ImageProtocol) -> Preprocessing:
    own = encoder.preprocessing
    if protocol == "paper":
        square = (PAPER_SIDE, PAPER_SIDE)
        return replace(own, size=square, resize=square, interpolation="bilinear")
    return own


def _prepare(name: str, digest: str, picture: PIL.Image.Image, preprocessing: Preprocessing) -> Image:
    """Return a decoded photo as an Image, with the box of the photo that the encoder sees."""
    width, height = picture.size
    rows, columns = preprocessing.resized(height, width)
    y, x = preprocessing.crop_corner(rows, columns)
    bottom, right = preprocessing.size
    if rows * columns > MAX_RESIZED_PIXELS:
        raise ImageError(f"{name}: {width}×{height} pixels is too long and thin; crop it first")
    photo = Photo(
        name=name,
        picture=_drawing(picture),
        size=(height, width),
        box=(x * width / columns, y * height / rows, (x + right) * width / columns, (y + bottom) * height / rows),
        digest=digest,
    )
    return Image(pixels=preprocessing(picture), preprocessing=preprocessing, photo=photo)


def _drawing(picture: PIL.Image.Image) -> np.ndarray:
    """Return the picture to draw maps on, uint8 [rows, columns, 3]."""
    small = picture.copy()
    small.thumbnail((MAX_DRAWING_SIDE, MAX_DRAWING_SIDE))
    values = np.asarray(small)
    if small.mode == "F":
        values = np.round(values.clip(0, 1) * 255).astype(np.uint8)[..., None].repeat(3, axis=2)
    return np.ascontiguousarray(values)
