"""Metrics of whether the pixels that a map calls important matter to the encoder: deletion and insertion.

Both (Petsiuk et al. 2018) are used without labels: they follow how similar the code h = f(x) stays to the code of

    x with the share q of its most important pixels replaced by a fill         deletion: lower is better
    the fill with the share q of x's most important pixels put in              insertion: higher is better

The similarity is the cosine, and the score is the area under the curve over q from 0 to 1. Pixels of equal importance
are replaced together, so that the curve of a constant map has a single step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, final, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.methods.bases.base_options import FILLS
from repeat_xai.metrics.metric import EncoderMetric, ExplainingMethod, ScoredMap, map_of_explanation
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

CurveName = Literal["deletion", "insertion"]
IMAGES_PER_BATCH = 16
"""Partly replaced images that go through the encoder together."""


class Curve(NamedTuple):
    """The similarity of the code after each share of pixels."""

    shares: Float[Tensor, " steps"]
    similarities: Float[Tensor, " steps"]

    @property
    def area(self) -> float:
        """The area under the curve, by the trapezoidal rule."""
        return float(torch.trapezoid(self.similarities, self.shares))


def deletion(encoder: Encoder, image: Image, importance: Map, *, steps: int = 20, fill: str = "mean") -> Curve:
    """Return the curve of the code's similarity as the most important pixels are replaced first (Petsiuk et al. 2018).

    `fill` replaces the pixels: the mean colour ("mean"), black, or a blurred copy of the image. The score is
    `.area`, which lies between −1 and 1. Lower is better: the code is lost as soon as the most important pixels are
    gone. Always defined; a map that is not finite is refused.

    >>> import repeat_xai as rx, torch
    >>> encoder = rx.load_encoder(torch.nn.Flatten())
    >>> image = rx.load_image(torch.ones(3, 8, 8), encoder)
    >>> curve = deletion(encoder, image, torch.ones(8, 8), steps=2)
    >>> curve.similarities.round(decimals=2).tolist()
    [1.0, 0.0, 0.0]
    """
    return _curve(encoder, image, importance, curve="deletion", steps=steps, fill=fill)


def insertion(encoder: Encoder, image: Image, importance: Map, *, steps: int = 20, fill: str = "mean") -> Curve:
    """Return the curve of the code's similarity as the most important pixels are put in first (Petsiuk et al. 2018).

    `fill` is what the curve starts from: the mean colour ("mean"), black, or a blurred copy of the image. The score is
    `.area`, which lies between −1 and 1. Higher is better: few pixels suffice to restore the code. Always defined; a
    map that is not finite is refused.

    >>> import repeat_xai as rx, torch
    >>> encoder = rx.load_encoder(torch.nn.Flatten())
    >>> image = rx.load_image(torch.ones(3, 8, 8), encoder)
    >>> curve = insertion(encoder, image, torch.ones(8, 8), steps=2)
    >>> curve.similarities.round(decimals=2).tolist()
    [0.0, 1.0, 1.0]
    """
    return _curve(encoder, image, importance, curve="insertion", steps=steps, fill=fill)


def _curve(encoder: Encoder, image: Image, importance: Map, *, curve: CurveName, steps: int, fill: str) -> Curve:
    expect(encoder, image)
    choose("fill", fill, FILLS)
    at_least("steps", steps, 1)
    if importance.shape != image.pixels.shape[1:] or not importance.isfinite().all():
        raise ConfigurationError(f"importance must be a finite map of {list(image.pixels.shape[1:])}")
    pixels = image.pixels[None].to(encoder.device, encoder.dtype)
    filled = FILLS[fill](pixels, encoder)
    values = importance.double().flatten()
    # The number of pixels that are more important than each pixel and are replaced before it.
    before = len(values) - torch.searchsorted(values.sort().values, values, right=True)
    order = (steps * before).view(image.pixels.shape[1:]).to(encoder.device)
    numbers = torch.arange(steps + 1)
    start, end = (pixels, filled) if curve == "deletion" else (filled, pixels)
    code = encoder(pixels).double()
    similarities = []
    for batch in torch.split(numbers.to(encoder.device), IMAGES_PER_BATCH):
        # Whole numbers are compared, so that rounding replaces no pixel a step early.
        replaced = (order < len(values) * batch[:, None, None])[:, None]
        codes = encoder(torch.where(replaced, end, start)).double()
        similarities.append(F.cosine_similarity(code, codes).cpu())
    return Curve(numbers.double() / steps, torch.cat(similarities))


@final
@dataclass(frozen=True, kw_only=True)
class FaithfulnessScore:
    """The area under the deletion or the insertion curve of a method's importance."""

    curve: CurveName
    steps: int = 20
    fill: str = "mean"

    def __post_init__(self) -> None:
        choose("curve", self.curve, get_args(CurveName))
        at_least("steps", self.steps, 1)
        choose("fill", self.fill, FILLS)

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> dict[ScoredMap, float]:
        """Return the area for importance."""
        importance = map_of_explanation(method(encoder, image, seed=seed), "importance")
        curve = _curve(encoder, image, importance, curve=self.curve, steps=self.steps, fill=self.fill)
        return {"importance": curve.area}


NAMED = (
    EncoderMetric(
        name="deletion",
        better="lower",
        description="similarity of the code while the most important pixels are replaced, area under the curve",
        citation="Petsiuk et al. 2018",
        score=FaithfulnessScore(curve="deletion"),
    ),
    EncoderMetric(
        name="insertion",
        better="higher",
        description="similarity of the code while the most important pixels are put in, area under the curve",
        citation="Petsiuk et al. 2018",
        score=FaithfulnessScore(curve="insertion"),
    ),
)
