"""Many masked copies of an image through the encoder, a chunk at a time: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from repeat_xai.calls import metering, tell
from repeat_xai.errors import ConfigurationError, EncoderError, reason
from repeat_xai.masks import Basis, Draws, Grid
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, Kernel

if TYPE_CHECKING:
    from jaxtyping import Float

CHUNKS = {"cpu": 16, "cuda": 256}
"""Masked copies through the encoder at once, by kind of device: more fill a GPU, but only crowd a CPU's caches."""
SAME = 8
"""Codes no further apart than so many rounding errors are the same code."""


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
    masks: int,
    similarity: Kernel,
    chunk: int | None,
    seed: int,
) -> Iterator[Chunk]:
    """s(h, h̄_n) for masks 0 to `masks` of the row that the seed and the image name, in float64."""
    if not image.pixels.any():
        raise EncoderError(f"{image.photo.name}: blank, every pixel is the mean colour, so masking changes nothing")
    pixels = image.pixels.to(encoder.device, encoder.dtype)
    whole = encode(encoder, pixels[None].clone())[0]
    row = fold(seed, image.photo.digest)
    chunk = chunk or CHUNKS.get(encoder.device.type, CHUNKS["cpu"])
    first, furthest = None, whole.new_zeros(())
    for start in range(0, masks, chunk):
        draws = basis.draw(seed=row, start=start, stop=min(start + chunk, masks))
        codes = encode(encoder, _masked(pixels, basis, draws))
        first = codes[0] if first is None else first
        furthest = torch.maximum(furthest, (codes - first).abs().amax())
        yield Chunk(draws, _measured(similarity, whole.double(), codes.double()))
    if masks > 1 and first is not None and furthest <= SAME * torch.finfo(first.dtype).eps * first.abs().amax():
        raise EncoderError(
            f"{image.photo.name}: every masked copy has the same code; {encoder.name} ignores its input, "
            "or the masks keep too little of it"
        )


def encode(encoder: Encoder, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]:
    """One finite code per image, or a clear refusal."""
    shape = "×".join(map(str, images.shape))
    try:
        with metering() as meter:
            codes = encoder(images)
        if not meter.calls:
            tell(len(images))
    except EncoderError:
        raise
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(shape) from error
    except Exception as error:  # any module may fail in any way
        raise EncoderError(f"{encoder.name}: fails on a batch of {shape}: {reason(error)}") from error
    if codes.ndim != 2 or len(codes) != len(images) or not codes.shape[1]:
        raise EncoderError(
            f"{encoder.name}: returns {list(codes.shape)} for {len(images)} images, not one code per image "
            f"[{len(images)}, dim]; choose a pool such as avg, cls or flatten"
        )
    if not codes.is_floating_point():
        raise EncoderError(f"{encoder.name}: returns codes of {codes.dtype}, not floats")
    if not codes.isfinite().all():
        raise EncoderError(f"{encoder.name}: returns NaN or infinite codes; check its weights and precision")
    return codes


def _measured(similarity: Kernel, whole: Tensor, codes: Tensor) -> Float[Tensor, " masks"]:
    found = similarity(whole, codes)
    if not isinstance(found, Tensor) or found.shape != codes.shape[:1]:
        shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(f"the similarity gives {shape} for {len(codes)} codes, not a number each")
    if not found.isfinite().all():
        raise EncoderError("the similarity gives NaN or infinite numbers")
    return found.double()


def _masked(pixels: Float[Tensor, "channels height width"], basis: Basis, draws: Draws) -> Tensor:
    try:
        return pixels * basis.masks(draws, pixels.dtype)[:, None]
    except torch.OutOfMemoryError as error:
        raise _out_of_memory(f"{len(draws.grids)}×" + "×".join(map(str, pixels.shape))) from error


def _out_of_memory(shape: str) -> EncoderError:
    return EncoderError(f"out of memory on a batch of {shape}; use a smaller chunk")
