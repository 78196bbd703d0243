"""Options of the label-free methods; an option of one name means the same in every method.

`fill` replaces the pixels that a method takes away, `channels` turns the attributions of all channels into one map.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torchvision.transforms.functional import gaussian_blur

from repeat_xai.engine.targets import expect_target
from repeat_xai.errors import ConfigurationError, at_least, choose, expect_number
from repeat_xai.types import Encoder

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

    Attributions = Float[Tensor, "channels height width"]
    Pixels = Float[Tensor, "1 channels height width"]


def mean(pixels: Pixels, encoder: Encoder) -> Pixels:
    """Return an image of the mean colour, which the paper's masks leave."""
    return torch.zeros_like(pixels)


def black(pixels: Pixels, encoder: Encoder) -> Pixels:
    """Return a black image, as the encoder's preprocessing makes it."""
    how = encoder.preprocessing
    if len(how.mean) != pixels.shape[1]:
        raise ConfigurationError(f"fill 'black' is unknown: {len(how.mean)} means for {pixels.shape[1]} channels")
    colours = torch.tensor([-mean / std for mean, std in zip(how.mean, how.std, strict=True)])
    return colours.to(pixels)[None, :, None, None].expand_as(pixels).contiguous()


def blur(pixels: Pixels, encoder: Encoder) -> Pixels:
    """Return the image blurred so much that only large patches of colour are left."""
    side = min(pixels.shape[2:]) // 4 * 2 + 1
    across: Tensor = gaussian_blur(pixels, [side, 1], [side / 6, 1.0])
    blurred: Tensor = gaussian_blur(across, [1, side], [1.0, side / 6])
    return blurred


FILLS: dict[str, Callable[[Tensor, Encoder], Tensor]] = {f.__name__: f for f in (mean, black, blur)}


def sum_abs(attributions: Attributions) -> Map:
    """Return Σ|a|, as in the paper."""
    return attributions.abs().sum(0)


def max_abs(attributions: Attributions) -> Map:
    """Return max|a|."""
    return attributions.abs().amax(0)


def signed_mean(attributions: Attributions) -> Map:
    """Return the mean, which is negative where the pixel lowers the similarity."""
    return attributions.mean(0)


CHANNELS: dict[str, Callable[[Tensor], Tensor]] = {"sum_abs": sum_abs, "max_abs": max_abs, "mean": signed_mean}


def _check_features(value: object) -> None:
    if isinstance(value, type) or not (isinstance(value, Tensor) or callable(value)):
        raise ConfigurationError(f"features must be such as Squares() or a tensor of numbers, not {value!r}")


def _check_noise(value: Any) -> None:
    expect_number("noise", value)
    if value <= 0:
        raise ConfigurationError(f"noise must be above zero, not {value}")


CHECKS: dict[str, Callable[[Any], None]] = {
    "channels": partial(choose, "channels", known=CHANNELS),
    "fill": partial(choose, "fill", known=FILLS),
    "steps": partial(at_least, "steps", least=1),
    "samples": partial(at_least, "samples", least=1),
    "window": partial(at_least, "window", least=1),
    "stride": partial(at_least, "stride", least=1),
    "target": expect_target,
    "features": _check_features,
    "noise": _check_noise,
}


def check_options(method: Any) -> None:
    """Refuse options of a method that make no sense."""
    for field in fields(method):
        if field.name in CHECKS:
            CHECKS[field.name](getattr(method, field.name))
