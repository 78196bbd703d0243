"""Many masked copies of an image through the encoder, a chunk at a time: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from repeat_xai.errors import EncoderError
from repeat_xai.masks import Basis, Draws, Grid
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, Kernel

if TYPE_CHECKING:
    from jaxtyping import Float


CHUNKS = {"cpu": 16, "cuda": 256}
"""Masked copies through the encoder at once, by kind of device: more fill a GPU, but only crowd a CPU's caches."""


class Chunk(NamedTuple):
    """Some masks, and how alike the image stays under each of them."""

    draws: Draws
    similarity: Float[Tensor, " masks"]


def basis_for(encoder: Encoder, image: Image, grid: Grid) -> Basis:
    """The basis of masks for this image, on the encoder's device."""
    height, width = image.pixels.shape[1:]
    return Basis.of(grid, height, width, encoder.device)


def similarities(
    encoder: Encoder,
    image: Image,
    *,
    basis: Basis,
    grid: Grid,
    masks: int,
    similarity: Kernel,
    chunk: int | None,
    seed: int,
) -> Iterator[Chunk]:
    """s(h, h̄_n) for masks 0 to `masks` of the row that the seed and the image name, in float64."""
    pixels = image.pixels.to(encoder.device, encoder.dtype)
    whole = encode(encoder, pixels[None])[0]
    row = fold(seed, image.photo.digest)
    chunk = chunk or CHUNKS[encoder.device.type]
    for start in range(0, masks, chunk):
        draws = basis.draw(grid, seed=row, start=start, stop=min(start + chunk, masks))
        copies = pixels * basis.masks(draws, encoder.dtype)[:, None]
        yield Chunk(draws, similarity(whole, encode(encoder, copies)))


def encode(encoder: Encoder, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]:
    """One finite code an image, in float64, or a clear refusal."""
    shape = "×".join(map(str, images.shape))
    try:
        codes = encoder(images)
    except EncoderError:
        raise
    except torch.OutOfMemoryError as error:
        raise EncoderError(f"{encoder.name}: out of memory on a batch of {shape}; use a smaller chunk") from error
    except Exception as error:  # any module may fail in any way
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EncoderError(f"{encoder.name}: fails on a batch of {shape}: {reason}") from error
    if codes.ndim != 2 or len(codes) != len(images) or not codes.shape[1]:
        raise EncoderError(
            f"{encoder.name}: returns {list(codes.shape)} for {len(images)} images, not one code an image "
            f"[{len(images)}, dim]; choose a pool such as avg, cls or flatten"
        )
    if not codes.is_floating_point():
        raise EncoderError(f"{encoder.name}: returns codes of {codes.dtype}, not floats")
    if not codes.isfinite().all():
        raise EncoderError(f"{encoder.name}: returns NaN or infinite codes; check its weights and precision")
    return codes.double()
