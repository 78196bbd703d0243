"""The short way to explain pictures of any kind: paths, Pillow images, arrays, tensors and loaders of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from torch import Tensor

from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.errors import ImageError
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Encoder, Explanation, Image

ACCEPTED = "a path, a Pillow image, an array, a tensor [c, h, w] or [n, c, h, w], or an Image"
BATCH_DIMENSIONS = 4


def explain(
    encoder: Encoder, picture: object, *, method: Method = Repeat(), seed: int = 0, protocol: ImageProtocol = "encoder"
) -> Explanation:
    """Explain one picture.

    Args:
        encoder: The encoder, made by `load_encoder`.
        picture: A path, a Pillow image, an array [h, w] or [h, w, 3], a normalised tensor [c, h, w] or [1, c, h, w], or
            an `Image` made by `load_image`.
        method: The method that explains it.
        seed: The same seed gives the same maps.
        protocol: `encoder` prepares photos as the encoder was trained, `paper` squeezes them to 224×224 pixels.
    """
    return method(encoder, one_image(encoder, picture, protocol), seed=seed)


def explain_many(
    encoder: Encoder,
    pictures: Iterable[object],
    *,
    method: Method = Repeat(),
    seed: int = 0,
    protocol: ImageProtocol = "encoder",
) -> Iterator[Explanation]:
    """Explain many pictures, in order, several at once on a GPU.

    Args:
        encoder: The encoder, made by `load_encoder`.
        pictures: Anything that yields what `explain` takes: a list of paths, a batch of tensors [n, c, h, w], or a
            `DataLoader`. Of a batch (images, labels) the images are used.
        method: The method that explains them.
        seed: The same seed gives the same maps, in whatever order the pictures come.
        protocol: As for `explain`.
    """
    if isinstance(pictures, str | Path | PIL.Image.Image | Image) or not isinstance(pictures, Iterable):
        raise ImageError(f"explain_many takes a list or loader of pictures, not {type(pictures).__name__}; use explain")
    if isinstance(pictures, dict):
        raise ImageError(f"explain_many cannot take a dict; give {ACCEPTED}, or a list of these")
    batches = [pictures] if _is_batch(pictures) else pictures
    return method.stream(
        encoder, _named(image for batch in batches for image in _images(encoder, batch, protocol)), seed=seed
    )


def one_image(encoder: Encoder, picture: object, protocol: ImageProtocol) -> Image:
    """Return the image of a picture, made ready for the encoder; refuse a batch of several."""
    images = list(_images(encoder, picture, protocol))
    if len(images) != 1:
        raise ImageError(f"this is a batch of {len(images)} images; use explain_many")
    return images[0]


def _images(encoder: Encoder, picture: Any, protocol: ImageProtocol) -> Iterator[Image]:
    """Yield the image of a picture, or the images of a batch, made ready for the encoder."""
    if isinstance(picture, tuple | list) and picture and _is_batch(picture[0]):  # images with labels, from a loader
        picture = picture[0]
    if isinstance(picture, Image):
        yield picture
    elif _is_batch(picture):
        for part in picture:
            yield load_image(part, encoder, protocol=protocol)
    elif isinstance(picture, str | Path | PIL.Image.Image | np.ndarray | Tensor):
        yield load_image(picture, encoder, protocol=protocol)
    else:
        raise ImageError(f"cannot explain {type(picture).__name__}; give {ACCEPTED}")


def _is_batch(picture: object) -> bool:
    """Return whether a tensor or an array holds several images."""
    return isinstance(picture, np.ndarray | Tensor) and picture.ndim == BATCH_DIMENSIONS


def _named(images: Iterable[Image]) -> Iterator[Image]:
    """Yield the images, with numbers for those that have no name of their own."""
    for number, image in enumerate(images):
        if image.photo.name in ("image", "tensor"):
            yield replace(image, photo=replace(image.photo, name=f"{image.photo.name} {number}"))
        else:
            yield image
