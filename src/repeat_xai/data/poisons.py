"""Poisons: noise that is hardly seen, and that whoever learns from the images takes for what tells them apart.

autoregressive    x(i, j) = Σ β_kl x(i − 2 + k, j − 2 + l): each value from the eight before it in a window of 3×3, a
                  process a class and channel, from Gaussian noise on a canvas 4 pixels larger at the top and left,
                  which are cut off; of length 1 (Sandoval-Segura et al. 2022)
separable         a value for each patch of 8×8 pixels and each channel, from a Gaussian cluster of each class, far from
                  the others; of root mean square 6/255 (Yu et al. 2022)

Norms are of pixels from 0 to 1. An image's noise depends on the seed, its place and its label alone.
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

    Images = UInt8[np.ndarray, "images height width 3"]
    Labels = Int[np.ndarray, " images"] | UInt8[np.ndarray, " images"]
    Noise = Float[np.ndarray, "images height width 3"]

Norm = Literal["l2", "rms", "linf"]
MARGIN = 4
"""Rows and columns of an autoregressive canvas that are cut off, so that the noise it starts from is forgotten."""
APART = 10.0
"""How far the centre of a class lies from zero along each axis, in deviations of its cluster."""
AT_ONCE = 1000
FLOATS = ("<f2", "<f4", "<f8")
MOST_BYTES = 2**31
"""Of images or noise in a file: all of CIFAR-10 in double precision, the largest that is published, takes 1.2 GB."""
WHOLE_NUMBERS = ArrayKind(("|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8"), dimensions=1, max_bytes=2**26)
IMAGES = ArrayKind(("|u1", *FLOATS), dimensions=4, max_bytes=MOST_BYTES)
ARRAYS = {"images": IMAGES, "labels": WHOLE_NUMBERS, "index": WHOLE_NUMBERS}
"""What an `.npz` of images may hold."""
COEFFICIENTS = ArrayKind(FLOATS, dimensions=4, max_bytes=2**20)
"""Of an autoregressive process for each class and channel."""


def autoregressive(
    images: Images,
    labels: Labels,
    coefficients: Float[np.ndarray, "classes 3 3 3"],
    *,
    epsilon: float = 1.0,
    norm: Norm = "l2",
    seed: int,
) -> Images:
    """Images under class-wise autoregressive noise; the last coefficient of each window, its own, is not used."""
    _expect(images, labels)
    if coefficients.ndim != 4 or coefficients.shape[1:] != (3, 3, 3) or labels.max(initial=0) >= len(coefficients):
        shape, most = list(coefficients.shape), labels.max(initial=0)
        raise ConfigurationError(f"coefficients are [classes, 3, 3, 3] for labels up to {most}, not {shape}")
    noise = autoregressive_noise(labels, coefficients, size=images.shape[1:3], seed=seed)
    return added(images, scaled(noise, epsilon, norm))


def separable(
    images: Images, labels: Labels, *, epsilon: float = 6 / 255, norm: Norm = "rms", patch: int = 8, seed: int
) -> Images:
    """Images under class-wise noise that a linear classifier tells apart."""
    _expect(images, labels)
    at_least("patch", patch, 1)
    return added(images, scaled(separable_noise(labels, size=images.shape[1:3], patch=patch, seed=seed), epsilon, norm))


def pairs(
    clean: Images | str | Path,
    poisoned: np.ndarray | str | Path,
    *,
    labels: Labels | None = None,
    weight: float = 8 / 255,
) -> Images:
    """Poisoned images, one for each clean one from the first on: as they are, or as noise to be added.

    Files are `.npz` with `images` and no more beside them than `labels` and `index`, `.npy`, or torch's `.pt` and
    `.pth`, of 2 GiB at most. Noise is held to [−1, 1] and given a weight:
    that of contrastive poisoning (He et al. 2023), or 1 for noise in units of pixels from 0 to 1. Class-wise noise
    needs labels.
    """
    before = _loaded(clean)
    after = _loaded(poisoned)
    if before.dtype != np.uint8 or after.ndim != 4 or before.shape[1:] != after.shape[1:]:
        raise ConfigurationError(f"{_shape(after)} are no images or noise for {_shape(before)}; give uint8 or floats")
    if after.dtype != np.uint8:
        if not np.issubdtype(after.dtype, np.floating) or not np.isfinite(after).all():
            raise ConfigurationError(f"noise must be of finite floats, not {after.dtype}")
        by_class = labels is not None and len(after) == labels.max(initial=0) + 1
        noise = after[labels] if by_class else after[: len(before)]
        if len(noise) < len(before):
            raise ConfigurationError(
                f"{len(noise)} noises are too few for {len(before)} images; class-wise ones need labels"
            )
        after = added(before, weight * np.clip(noise, -1, 1))
    after = after[: len(before)]
    if largest_difference(before[: len(after)], after) == 0:
        raise ConfigurationError("nothing is poisoned: no pixel differs; is the weight of the noise right?")
    return after


def largest_difference(clean: Images, poisoned: Images) -> int:
    """Between any two values of the same pixel, in levels of 255.

    >>> import numpy as np
    >>> largest_difference(np.zeros((1, 2, 2, 3), np.uint8), np.full((1, 2, 2, 3), 8, np.uint8))
    8
    """
    return int(np.abs(clean.astype(np.int16) - poisoned.astype(np.int16)).max(initial=0))


def autoregressive_noise(
    labels: Labels, coefficients: Float[np.ndarray, "classes 3 3 3"], *, size: tuple[int, int], seed: int
) -> Noise:
    """Before it is scaled."""
    rows, columns = (side + MARGIN for side in size)
    parts = []
    for first in range(0, len(labels), AT_ONCE):
        some = labels[first : first + AT_ONCE]
        weights = coefficients[some].astype(np.float64)
        weights[..., 2, 2] = 0
        canvas = _normals(fold(seed, "autoregressive"), first, len(some), (3, rows, columns))
        for i in range(2, rows):
            for j in range(2, columns):
                window = canvas[:, :, i - 2 : i + 1, j - 2 : j + 1]
                canvas[:, :, i, j] = (window * weights).sum((2, 3))
        parts.append(canvas[:, :, MARGIN:, MARGIN:])
    return np.moveaxis(np.concatenate([np.empty((0, 3, *size)), *parts]), 1, -1)


def separable_noise(labels: Labels, *, size: tuple[int, int], patch: int, seed: int) -> Noise:
    """Before it is scaled: centres at corners of a cube, the deviation about them 1."""
    cells = [-(-side // patch) for side in size]
    classes = int(labels.max(initial=0)) + 1
    corners = uniforms(fold(seed, "centres"), start=0, stop=classes, width=3 * cells[0] * cells[1])
    centres = np.where(corners < 0.5, -APART, APART)
    values: np.ndarray = centres[labels].reshape(-1, *cells, 3) + _normals(
        fold(seed, "separable"), 0, len(labels), (*cells, 3)
    )
    return values.repeat(patch, 1).repeat(patch, 2)[:, : size[0], : size[1]]


def scaled(noise: Noise, epsilon: float, norm: Norm) -> Noise:
    """Each image's noise to the size it shall have."""
    choose("norm", norm, get_args(Norm))
    if not 0 < epsilon < float("inf"):
        raise ConfigurationError(f"epsilon must be a number above zero, not {epsilon}")
    rows = noise.reshape(len(noise), -1)
    if norm == "linf":
        sizes = np.abs(rows).max(1)
    else:
        sizes = np.sqrt((rows**2).sum(1) if norm == "l2" else (rows**2).mean(1))
    found: np.ndarray = noise * (epsilon / sizes)[:, None, None, None]
    return found


def added(images: Images, noise: Noise) -> Images:
    """Held to what a picture can show, and rounded to the nearest level."""
    levels: np.ndarray = np.floor(np.clip(images + 255.0 * noise, 0, 255) + 0.5).astype(np.uint8)
    return levels


def _normals(stream: int, first: int, count: int, shape: tuple[int, ...]) -> np.ndarray:
    drawn = uniforms(stream, start=first, stop=first + count, width=int(np.prod(shape)))
    values: np.ndarray = torch.special.ndtri(torch.from_numpy(drawn).clamp_min(2**-53)).numpy()
    return values.reshape(count, *shape)


def _expect(images: np.ndarray, labels: np.ndarray) -> None:
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3:
        raise ConfigurationError(f"images are uint8 [images, height, width, 3], not {_shape(images)}")
    if labels.shape != images.shape[:1] or not np.issubdtype(labels.dtype, np.integer) or labels.min(initial=0) < 0:
        raise ConfigurationError(
            f"labels are a whole number from 0 for each of {len(images)} images, not {_shape(labels)}"
        )


def _shape(values: np.ndarray) -> str:
    return f"{values.dtype} {list(values.shape)}"


def _loaded(source: np.ndarray | str | Path) -> np.ndarray:
    """Images or noise, channels last."""
    if isinstance(source, np.ndarray):
        found = source
    else:
        try:
            found = _read(Path(source))
        except Exception as error:  # torch and zipfile meet damaged files with errors of every kind
            raise ConfigurationError(
                f"{source}: holds no images or noise that can be read ({reason(error)})"
            ) from error
    return np.moveaxis(found, 1, -1) if found.ndim == 4 and found.shape[1] == 3 and found.shape[-1] != 3 else found


def _read(path: Path) -> np.ndarray:
    with open_regular(path) as file:
        size, begins_as_zip = os.fstat(file.fileno()).st_size, file.read(2) == b"PK"
    if size > MOST_BYTES + MAX_HEADER_BYTES:
        raise ValueError(f"it has {size} bytes")
    if path.suffix in (".pt", ".pth"):
        held = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(held, dict):  # a checkpoint of contrastive poisoning
            held = held.get("model", held)["delta"]
        values: np.ndarray = held.detach().numpy()
        return values
    if not begins_as_zip:
        return read_array(path, IMAGES)
    arrays = read_arrays(path, ARRAYS)
    if "index" in arrays and not np.array_equal(arrays["index"], np.arange(len(arrays["index"]))):
        raise ValueError("its images are not the first ones, in order")
    return arrays["images"]
