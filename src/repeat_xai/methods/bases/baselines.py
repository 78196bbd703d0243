"""What stands in for a pixel that is taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torchvision.transforms.functional import gaussian_blur

from repeat_xai.errors import ConfigurationError
from repeat_xai.types import Encoder

if TYPE_CHECKING:
    from jaxtyping import Float

    Pixels = Float[Tensor, "1 channels height width"]


def zero(pixels: Pixels, encoder: Encoder) -> Pixels:
    """The mean colour, as the paper's masks leave it."""
    return torch.zeros_like(pixels)


def black(pixels: Pixels, encoder: Encoder) -> Pixels:
    """Black, as the encoder's preprocessing makes it."""
    how = encoder.preprocessing
    if len(how.mean) != pixels.shape[1]:
        raise ConfigurationError(f"baseline 'black' is unknown: {len(how.mean)} means for {pixels.shape[1]} channels")
    colours = torch.tensor([-mean / std for mean, std in zip(how.mean, how.std, strict=True)])
    return colours.to(pixels)[None, :, None, None].expand_as(pixels).contiguous()


def blur(pixels: Pixels, encoder: Encoder) -> Pixels:
    """The image with nothing left but its large patches of colour."""
    side = min(pixels.shape[2:]) // 4 * 2 + 1
    across: Tensor = gaussian_blur(pixels, [side, 1], [side / 6, 1.0])
    blurred: Tensor = gaussian_blur(across, [1, side], [1.0, side / 6])
    return blurred


BASELINES: dict[str, Callable[[Tensor, Encoder], Tensor]] = {f.__name__: f for f in (zero, black, blur)}
