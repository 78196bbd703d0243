"""Many masked copies of an image through the encoder, a chunk at a time: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, final

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


@final
class Comparison:
    """An image held against its masked copies: how alike it stays under whichever masks are asked for."""

    def __init__(self, encoder: Encoder, image: Image, *, basis: Basis, similarity: Kernel, chunk: int | None) -> None:
        if not image.pixels.any():
            raise EncoderError(f"{image.photo.name}: blank, every pixel is the mean colour, so masking changes nothing")
        self.encoder, self.image, self.basis, self.similarity = encoder, image, basis, similarity
        self.chunk = chunk or CHUNKS.get(encoder.device.type, CHUNKS["cpu"])
        self._pixels = image.pixels.to(encoder.device, encoder.dtype)
        self._whole = encode(encoder, self._pixels[None].clone())[0]
        self._first: Tensor | None = None
        self._furthest = self._whole.new_zeros(())

    @staticmethod
    def of(encoder: Encoder, image: Image, grid: Grid, similarity: Kernel, chunk: int | None) -> Comparison:
        """With masks of this kind, on the encoder's device."""
        height, width = image.pixels.shape[1:]
        basis = Basis.of(grid, height, width, encoder.device)
        return Comparison(encoder, image, basis=basis, similarity=similarity, chunk=chunk)

    def __call__(self, draws: Draws) -> Float[Tensor, " masks"]:
        """s(h, h̄_n) for each of these masks, in float64."""
        starts = range(0, len(draws.grids), self.chunk)
        return torch.cat([self._compare(Draws(*(part[i : i + self.chunk] for part in draws))) for i in starts])

    def random(self, masks: int, *, seed: int) -> Iterator[Chunk]:
        """Masks 0 to `masks` of the row that the seed and the image name, a chunk at a time."""
        row = fold(seed, self.image.photo.digest)
        for start in range(0, masks, self.chunk):
            draws = self.basis.draw(seed=row, start=start, stop=min(start + self.chunk, masks))
            yield Chunk(draws, self(draws))
        if masks > 1:
            self.check()

    def check(self) -> None:
        """Refuse to explain from masked copies that all have the same code."""
        first = self._first
        if first is None or self._furthest > SAME * torch.finfo(first.dtype).eps * first.abs().amax():
            return
        raise EncoderError(
            f"{self.image.photo.name}: every masked copy has the same code; {self.encoder.name} ignores its input, "
            "or the masks keep too little of it"
        )

    def _compare(self, draws: Draws) -> Float[Tensor, " masks"]:
        codes = encode(self.encoder, _masked(self._pixels, self.basis, draws))
        self._first = codes[0] if self._first is None else self._first
        self._furthest = torch.maximum(self._furthest, (codes - self._first).abs().amax())
        return _measured(self.similarity, self._whole.double(), codes.double())


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
