"""An image disturbed a little, many times, and what becomes of its map.

With `numbers="fresh"` every explanation draws masks of its own, so that what is measured holds Monte-Carlo noise as
well as the disturbance; with `"common"` all share theirs, and the disturbance alone is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.metrics.emprt import Of, map_of
from repeat_xai.seeds import fold, uniforms
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Numbers = Literal["fresh", "common"]
Noise = Literal["normal", "uniform"]
MethodOf = Callable[..., Explanation]


class Shaken(NamedTuple):
    """One disturbance, and the map it leads to, divided by its largest value."""

    disturbance: Tensor
    map: Map


def disturbed(image: Image, *, noise: Noise, size: float, draws: int, numbers: Numbers, seed: int) -> Iterator[Image]:
    """The image with noise of that size on it: the deviation of a normal, the half-width of a uniform distribution."""
    choose("numbers", numbers, get_args(Numbers))
    at_least("draws", draws, 1)
    if not 0 < size < float("inf"):
        raise ConfigurationError(f"the size of the noise must be a number above zero, not {size}")
    for draw in range(draws):
        stream = fold(seed, "disturbance", draw, image.photo.digest)
        drawn = torch.from_numpy(uniforms(stream, start=0, stop=1, width=image.pixels.numel())[0])
        unit = torch.special.ndtri(drawn.clamp_min(2**-53)) if noise == "normal" else 2 * drawn - 1
        pixels = image.pixels + size * unit.view_as(image.pixels).to(image.pixels)
        digest = f"{image.photo.digest}, disturbance {draw}" if numbers == "fresh" else image.photo.digest
        yield replace(image, pixels=pixels, photo=replace(image.photo, digest=digest))


def shaken(
    method: MethodOf,
    encoder: Encoder,
    image: Image,
    *,
    noise: Noise,
    size: float,
    of: Of,
    draws: int,
    numbers: Numbers,
    seed: int,
) -> Iterator[Shaken]:
    """First the image as it is, then disturbed."""
    yield Shaken(torch.zeros_like(image.pixels).double(), _scaled(map_of(method(encoder, image, seed=seed), of)))
    for other in disturbed(image, noise=noise, size=size, draws=draws, numbers=numbers, seed=seed):
        away = other.pixels.double() - image.pixels.double()
        yield Shaken(away, _scaled(map_of(method(encoder, other, seed=seed), of)))


def _scaled(found: Map) -> Map:
    most = found.double().abs().max()
    return found.double() / most if most > 0 else found.double()
