"""Poisons: noise that is hardly seen, but that a model trained on the images learns instead of their content.

autoregressive    x(i, j) = Σ β_kl x(i − 2 + k, j − 2 + l): each value is computed from the eight values before it in a
                  window of 3×3, by one process for each class and channel. It starts from Gaussian noise on a canvas 4
                  pixels larger at the top and left, which are cut off. The noise has length 1 (Sandoval-Segura et al.
                  2022).
separable         One value for each patch of 8×8 pixels and each channel, from a Gaussian cluster for each class that
                  lies far from the others. The noise has a root mean square of 6/255 (Yu et al. 2022).

Norms are of pixels from 0 to 1. The noise of an image depends on the seed, its position and its label alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch

from repeat_xai.errors import ConfigurationError, at_least, choose, reason
from repeat_xai.files.arrays import MAX_HEADER_BYTES, ArrayKind, read_array, read_arrays
from repeat_xai.files.reading import open_regular
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8

    ImageArray = UInt8[np.ndarray, "images height width 3"]
    LabelArray = Int[np.ndarray, " images"] | UInt8[np.ndarray, " images"]
    NoiseArray = Float[np.ndarray, "images height width 3"]

Norm = Literal["l2", "rms", "linf"]
"""How the size of noise is measured: its length, its root mean square or its largest value."""
MARGIN = 4
"""Rows and columns of an autoregressive canvas that are cut off, since they still resemble the noise it starts from."""
CENTRE_DISTANCE = 10.0
"""Distance of a class's centre from zero along each axis, in standard deviations of its cluster."""
IMAGES_PER_BATCH = 1000
"""Images whose autoregressive noise is computed together; the result does not depend on it."""
MAX_BYTES = 2**31
"""Largest size of images or noise in a file: the largest published file, CIFAR-10 in double precision, has 1.2 GB."""
FLOATS = ("<f2", "<f4", "<f8")
WHOLE_NUMBERS = ArrayKind(("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"), dimensions=1, max_bytes=2**26)
IMAGES = ArrayKind(("|u1", *FLOATS), dimensions=4, max_bytes=MAX_BYTES)
ARRAYS = {"images": IMAGES, "labels": WHOLE_NUMBERS, "index": WHOLE_NUMBERS}
"""Arrays that an `.npz` file of images may hold."""
COEFFICIENTS = ArrayKind(FLOATS, dimensions=4, max_bytes=2**20)
"""Coefficients β of an autoregressive process, for each class and channel."""


def autoregressive(
    images: ImageArray,
    labels: LabelArray,
    coefficients: Float[np.ndarray, "classes 3 3 3"],
    *,
    epsilon: float = 1.0,
    norm: Norm = "l2",
    seed: int,
) -> ImageArray:
    """Return the images with autoregressive noise of their class added.

    The last coefficient of each 3×3 window, at the pixel that is computed, is not used.
    """
    _expect_images_with_labels(images, labels)
    if coefficients.ndim != 4 or coefficients.shape[1:] != (3, 3, 3) or labels.max(initial=0) >= len(coefficients):
        shape, largest = list(coefficients.shape), labels.max(initial=0)
        raise ConfigurationError(f"coefficients are [classes, 3, 3, 3] for labels up to {largest}, not {shape}")
    noise = autoregressive_noise(labels, coefficients, size=images.shape[1:3], seed=seed)
    return add_noise(images, scale_noise(noise, epsilon, norm))


def separable(
    images: ImageArray, labels: LabelArray, *, epsilon: float = 6 / 255, norm: Norm = "rms", patch: int = 8, seed: int
) -> ImageArray:
    """Return the images with noise of their class added, by which a linear classifier separates the classes."""
    _expect_images_with_labels(images, labels)
    at_least("patch", patch, 1)
    return add_noise(
        images, scale_noise(separable_noise(labels, size=images.shape[1:3], patch=patch, seed=seed), epsilon, norm)
    )


def poisoned_images(
    clean: ImageArray | str | Path,
    poisoned: np.ndarray | str | Path,
    *,
    labels: LabelArray | None = None,
    weight: float = 8 / 255,
) -> ImageArray:
    """Return poisoned images from an array or a file of them, or from noise that is added to clean images.

    Args:
        clean: Clean images, uint8 [images, height, width, 3], or a file of them.
        poisoned: Poisoned images in uint8, or noise in floats, or a file of them: `.npz` with `images` and at most
            `labels` and `index` beside them, `.npy`, or torch's `.pt` and `.pth`, of at most 2 GiB. The channels may
            come first. Noise is clipped to [−1, 1], weighted and added to the clean images.
        labels: Class of each clean image; needed if there is one noise for each class.
        weight: Factor of the noise: by default that of contrastive poisoning (He et al. 2023). Give 1 for noise in
            units of pixels from 0 to 1.

    Returns:
        Poisoned images, one for each clean image from the first on, as many as there are.
    """
    original = _load(clean)
    changed = _load(poisoned)
    if original.dtype != np.uint8 or changed.ndim != 4 or original.shape[1:] != changed.shape[1:]:
        raise ConfigurationError(
            f"{_shape(changed)} are no images or noise for {_shape(original)}; give uint8 or floats"
        )
    if changed.dtype != np.uint8:
        if not np.issubdtype(changed.dtype, np.floating) or not np.isfinite(changed).all():
            raise ConfigurationError(f"noise must be of finite floats, not {changed.dtype}")
        by_class = labels is not None and len(changed) == labels.max(initial=0) + 1
        noise = changed[labels] if by_class else changed[: len(original)]
        if len(noise) < len(original):
            raise ConfigurationError(
                f"noise for {len(noise)} images is too little for {len(original)}; noise for each class needs labels"
            )
        changed = add_noise(original, weight * np.clip(noise, -1, 1))
    changed = changed[: len(original)]
    if largest_difference(original[: len(changed)], changed) == 0:
        raise ConfigurationError("no pixel differs from the clean images; check the weight of the noise")
    return changed


def largest_difference(clean: ImageArray, poisoned: ImageArray) -> int:
    """Return the largest difference between clean and poisoned values of a pixel, in levels from 0 to 255.

    >>> import numpy as np
    >>> largest_difference(np.zeros((1, 2, 2, 3), np.uint8), np.full((1, 2, 2, 3), 8, np.uint8))
    8
    """
    return int(np.abs(clean.astype(np.int16) - poisoned.astype(np.int16)).max(initial=0))


def autoregressive_noise(
    labels: LabelArray, coefficients: Float[np.ndarray, "classes 3 3 3"], *, size: tuple[int, int], seed: int
) -> NoiseArray:
    """Return autoregressive noise for each label, before it is scaled."""
    rows, columns = (side + MARGIN for side in size)
    parts = []
    for first in range(0, len(labels), IMAGES_PER_BATCH):
        batch = labels[first : first + IMAGES_PER_BATCH]
        weights = coefficients[batch].astype(np.float64)
        weights[..., 2, 2] = 0
        canvas = _normals(fold(seed, "autoregressive"), first, len(batch), (3, rows, columns))
        for i in range(2, rows):
            for j in range(2, columns):
                window = canvas[:, :, i - 2 : i + 1, j - 2 : j + 1]
                canvas[:, :, i, j] = (window * weights).sum((2, 3))
        parts.append(canvas[:, :, MARGIN:, MARGIN:])
    return np.moveaxis(np.concatenate([np.empty((0, 3, *size)), *parts]), 1, -1)


def separable_noise(labels: LabelArray, *, size: tuple[int, int], patch: int, seed: int) -> NoiseArray:
    """Return separable noise for each label, before it is scaled.

    The centres of the classes are random corners of a cube; the values deviate from them with standard deviation 1.
    """
    cells = [-(-side // patch) for side in size]
    classes = int(labels.max(initial=0)) + 1
    corners = uniforms(fold(seed, "centres"), start=0, stop=classes, width=3 * cells[0] * cells[1])
    centres = np.where(corners < 0.5, -CENTRE_DISTANCE, CENTRE_DISTANCE)
    values: np.ndarray = centres[labels].reshape(-1, *cells, 3) + _normals(
        fold(seed, "separable"), 0, len(labels), (*cells, 3)
    )
    return values.repeat(patch, 1).repeat(patch, 2)[:, : size[0], : size[1]]


def scale_noise(noise: NoiseArray, epsilon: float, norm: Norm) -> NoiseArray:
    """Return noise scaled so that the norm of each image's noise is epsilon."""
    choose("norm", norm, get_args(Norm))
    if not 0 < epsilon < float("inf"):
        raise ConfigurationError(f"epsilon must be a number above zero, not {epsilon}")
    rows = noise.reshape(len(noise), -1)
    if norm == "linf":
        sizes = np.abs(rows).max(1)
    else:
        sizes = np.sqrt((rows**2).sum(1) if norm == "l2" else (rows**2).mean(1))
    scaled: np.ndarray = noise * (epsilon / sizes)[:, None, None, None]
    return scaled


def add_noise(images: ImageArray, noise: NoiseArray) -> ImageArray:
    """Return images with noise added, clipped to what an image can show and rounded to the nearest level."""
    levels: np.ndarray = np.floor(np.clip(images + 255.0 * noise, 0, 255) + 0.5).astype(np.uint8)
    return levels


def _normals(stream: int, first: int, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return Gaussian values for `count` images from number `first` on; an image's values do not depend on `count`."""
    draws = uniforms(stream, start=first, stop=first + count, width=int(np.prod(shape)))
    values: np.ndarray = torch.special.ndtri(torch.from_numpy(draws).clamp_min(2**-53)).numpy()
    return values.reshape(count, *shape)


def _expect_images_with_labels(images: np.ndarray, labels: np.ndarray) -> None:
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise ConfigurationError(f"images are uint8 [images, height, width, 3], not {_shape(images)}")
    if labels.shape != images.shape[:1] or not np.issubdtype(labels.dtype, np.integer) or labels.min(initial=0) < 0:
        raise ConfigurationError(
            f"labels are a whole number from 0 for each of {len(images)} images, not {_shape(labels)}"
        )


def _shape(values: np.ndarray) -> str:
    return f"{values.dtype} {list(values.shape)}"


def _load(source: np.ndarray | str | Path) -> np.ndarray:
    """Return images or noise from an array or a file, with the channels last."""
    if isinstance(source, np.ndarray):
        values = source
    else:
        try:
            values = _read(Path(source))
        except Exception as error:  # torch and zipfile raise errors of many classes for damaged files
            raise ConfigurationError(
                f"{source}: holds no images or noise that can be read ({reason(error)})"
            ) from error
    channels_first = values.ndim == 4 and values.shape[1] == 3 and values.shape[-1] != 3
    return np.moveaxis(values, 1, -1) if channels_first else values


def _read(path: Path) -> np.ndarray:
    """Return the images or the noise in a file of numpy or torch."""
    with open_regular(path) as file:
        size, begins_as_zip = os.fstat(file.fileno()).st_size, file.read(2) == b"PK"
    if size > MAX_BYTES + MAX_HEADER_BYTES:
        raise ValueError(f"it has {size} bytes")
    if path.suffix in (".pt", ".pth"):
        content = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(content, dict):  # a checkpoint of contrastive poisoning
            content = content.get("model", content)["delta"]
        values: np.ndarray = content.detach().numpy()
        return values
    if not begins_as_zip:
        return read_array(path, IMAGES)
    arrays = read_arrays(path, ARRAYS)
    if "index" in arrays and not np.array_equal(arrays["index"], np.arange(len(arrays["index"]))):
        raise ValueError("its images are not the first ones, in order")
    return arrays["images"]
