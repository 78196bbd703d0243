"""Deletion and insertion (Petsiuk et al. 2018) without labels: how alike the code stays as pixels go, or come.

    s(h, f(x with the most important q of its pixels taken away))        deletion: the lower the better
    s(h, f(nothing with the most important q of x's pixels put in))      insertion: the higher the better

s is the cosine; the score is the area under the curve over q from 0 to 1. Pixels that tie go together, so that a
constant map has one step only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.methods.bases.options import FILLS
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

Way = Literal["deletion", "insertion"]
AT_ONCE = 16


class Curve(NamedTuple):
    """How alike the code is after each share of pixels."""

    shares: Float[Tensor, " steps"]
    similarities: Float[Tensor, " steps"]

    @property
    def area(self) -> float:
        """Under the curve, by trapezia."""
        return float(torch.trapezoid(self.similarities, self.shares))


def deletion(
    encoder: Encoder, image: Image, importance: Map, *, way: Way = "deletion", steps: int = 20, fill: str = "mean"
) -> Curve:
    """The curve of one map: as its most important pixels go, or as they come."""
    expect(encoder, image)
    choose("way", way, get_args(Way))
    choose("fill", fill, FILLS)
    at_least("steps", steps, 1)
    if importance.shape != image.pixels.shape[1:] or not importance.isfinite().all():
        raise ConfigurationError(f"importance must be a finite map of {list(image.pixels.shape[1:])}")
    pixels = image.pixels[None].to(encoder.device, encoder.dtype)
    nothing = FILLS[fill](pixels, encoder)
    values = importance.double().flatten()
    first = len(values) - torch.searchsorted(values.sort().values, values, right=True)  # pixels that go before it
    place = (steps * first).view(image.pixels.shape[1:]).to(encoder.device)
    numbers = torch.arange(steps + 1)
    before, after = (pixels, nothing) if way == "deletion" else (nothing, pixels)
    code = encoder(pixels).double()
    similarities = []
    for some in torch.split(numbers.to(encoder.device), AT_ONCE):
        gone = (place < len(values) * some[:, None, None])[:, None]  # whole numbers, so that no pixel goes early
        similarities.append(F.cosine_similarity(code, encoder(torch.where(gone, after, before)).double()).cpu())
    return Curve(numbers.double() / steps, torch.cat(similarities))
