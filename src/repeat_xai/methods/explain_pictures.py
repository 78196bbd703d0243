"""The short way to explain pictures of any kind: paths, Pillow images, arrays, tensors and loaders of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import PIL.Image
from torch import Tensor

from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.engine.targets import Target
from repeat_xai.errors import ConfigurationError, ImageError, choose
from repeat_xai.methods.base import Method
from repeat_xai.methods.many_targets import answers_for_targets
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Encoder, Explanation, Image, Task, only_result, result_of

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
        protocol: `encoder` prepares photos as the encoder was trained, `paper` squeezes them to 224×224 pixels. An
            `Image` is prepared already.
    """
    _expect_method(method, protocol)
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
    _expect_method(method, protocol)
    return method.stream(encoder, _all_images(encoder, pictures, protocol), seed=seed)


def explain_targets(
    encoder: Encoder,
    picture: object,
    targets: Sequence[Target | None],
    *,
    method: Method = Repeat(),
    seed: int = 0,
    protocol: ImageProtocol = "encoder",
) -> list[Explanation]:
    """Explain one picture toward several targets, and return one explanation for each.

    With REPEAT or RELAX, all targets share the same masked copies: they cost the encoder calls of the one target that
    needs most masks, and each explanation equals the one that its target would get alone.

    Args:
        encoder: The encoder, made by `load_encoder`.
        picture: Anything that `explain` takes.
        targets: What the picture is compared with: an `Image`, a tuple of images (their mean code), a tensor (a code),
            a `Text`, a `Direction` or a `Contrast`; None is the picture itself.
        method: The method that explains it, without a target of its own.
        seed: The same seed gives the same maps.
        protocol: As for `explain`.
    """
    _expect_method(method, protocol)
    image = one_image(encoder, picture, protocol)
    return only_result(answers_for_targets(method, encoder, [Task(image)], targets, seed=seed))


def explain_many_targets(
    encoder: Encoder,
    pictures: Iterable[object],
    targets: Sequence[Target | None],
    *,
    method: Method = Repeat(),
    seed: int = 0,
    protocol: ImageProtocol = "encoder",
) -> Iterator[list[Explanation]]:
    """Explain many pictures toward several targets, in order: for each picture, a list as from `explain_targets`.

    The targets are encoded once, and not again for each picture.
    """
    _expect_method(method, protocol)
    images = _all_images(encoder, pictures, protocol)
    return map(result_of, answers_for_targets(method, encoder, map(Task, images), targets, seed=seed))


def _all_images(encoder: Encoder, pictures: Iterable[object], protocol: ImageProtocol) -> Iterator[Image]:
    """Return the images of a list, a batch or a loader; refuse a single picture."""
    if isinstance(pictures, str | Path | PIL.Image.Image | Image) or not isinstance(pictures, Iterable):
        raise ImageError(f"many pictures are needed, in a list or a loader, not {type(pictures).__name__}; use explain")
    if isinstance(pictures, dict):
        raise ImageError(f"a dict of pictures cannot be explained; give {ACCEPTED}, or a list of these")
    if isinstance(pictures, np.ndarray | Tensor) and pictures.ndim not in (1, BATCH_DIMENSIONS):
        raise ImageError(
            f"many pictures are a list of them or a batch [n, c, h, w], not {list(pictures.shape)}; use explain"
        )
    batches = [pictures] if _is_batch(pictures) else pictures
    return _named(image for batch in batches for image in _images(encoder, batch, protocol))


def one_image(encoder: Encoder, picture: object, protocol: ImageProtocol) -> Image:
    """Return the image of a picture, made ready for the encoder; refuse a batch of several."""
    images = list(_images(encoder, picture, protocol))
    if len(images) != 1:
        raise ImageError(f"this is a batch of {len(images)} images; use explain_many or explain_many_targets")
    return images[0]


def _images(encoder: Encoder, picture: Any, protocol: ImageProtocol) -> Iterator[Image]:
    """Yield the image of a picture, or the images of a batch, made ready for the encoder."""
    if isinstance(picture, tuple | list) and picture and _is_batch(picture[0]):  # images with labels, from a loader
        if any(map(_is_batch, picture[1:])):
            raise ImageError("these are several batches together; give the images of one of them")
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


def _expect_method(method: object, protocol: object) -> None:
    """Refuse what cannot explain images, and a protocol that does not exist."""
    if isinstance(method, type) or not (callable(method) and hasattr(method, "stream")):
        raise ConfigurationError(f"method must be a method such as Repeat() or Spread(base=Saliency()), not {method!r}")
    choose("protocol", protocol, get_args(ImageProtocol))


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
