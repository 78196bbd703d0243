"""eMPRT (Hedström et al. 2024): a sanity check of whether a map loses its structure when the encoder is randomised.

    (H_random − H_trained) / H_trained            H the histogram entropy of the map

H_random is that of the map for a copy of the encoder with randomised weights. Its map should be the more complex one,
which makes the value positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final, get_args

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.metrics.complexity import histogram_entropy
from repeat_xai.metrics.metric import (
    MAP_NAMES,
    EncoderMetric,
    ExplainingMethod,
    MapName,
    ScoredMap,
    map_of_explanation,
    maps_of_explanation,
)
from repeat_xai.metrics.randomisation import Randomise, randomise_encoder
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.metrics.map_arrays import Maps, Scores

LEAST_FLOAT32_STEPS = 1000
"""The fewest steps of float32 between a map's least and largest value for which its histogram says something."""


def emprt(
    method: ExplainingMethod,
    encoder: Encoder,
    images: Sequence[Image],
    *,
    map_name: MapName = "uncertainty",
    randomise: Randomise = "quantus",
    seed: int = 0,
) -> Float[Tensor, " images"]:
    """Return the relative change of each map's histogram entropy when the encoder is randomised (Hedström et al. 2024).

        (H_random − H_trained) / H_trained

    Range: −1 upwards. Higher is better, and above zero the randomised encoder has the more complex map, as it should.
    NaN where the map of the trained encoder is constant, or where a map spans so few steps of float32 that its
    histogram shows rounding. The method is called twice for each image.

    >>> import repeat_xai as rx, torch
    >>> from torch import nn
    >>> encoder = rx.load_encoder(nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 8)))
    >>> image = rx.load_image(torch.arange(192.0).view(3, 8, 8) / 192, encoder)
    >>> method = rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=8))
    >>> emprt(method, encoder, [image], seed=0).shape
    torch.Size([1])
    """
    choose("map_name", map_name, MAP_NAMES)
    if not images:
        raise ConfigurationError("there are no images to explain")
    randomised = randomise_encoder(encoder, randomise)
    trained_entropy, random_entropy = (
        torch.stack(
            [resolved_entropy(map_of_explanation(method(network, image, seed=seed), map_name)) for image in images]
        )
        for network in (encoder, randomised)
    )
    return relative_change(trained_entropy, random_entropy)


def relative_change(trained: Float[Tensor, "*images"], random: Float[Tensor, "*images"]) -> Float[Tensor, "*images"]:
    """Return the change of the entropy as a share of the trained encoder's; NaN where that is zero."""
    return torch.where(trained > 0, (random - trained) / trained, torch.nan)


def resolved_entropy(maps: Maps) -> Scores:
    """Return the histogram entropy of each map, or NaN where float32 does not resolve the map.

    The similarities of a randomised encoder may all lie so near 1 that float32, in which explanations hold their maps,
    has only a few values for the importance of all pixels.
    """
    low, high = maps.flatten(-2).aminmax(dim=-1)
    step = torch.finfo(torch.float32).eps * torch.maximum(low.abs(), high.abs())
    return torch.where(high - low < LEAST_FLOAT32_STEPS * step, torch.nan, histogram_entropy(maps))


@final
@dataclass(frozen=True, kw_only=True)
class EmprtScore:
    """The eMPRT of each map of a method.

    A table computes the same from rows of both encoders, which other columns share.
    """

    randomise: Randomise = "quantus"

    def __post_init__(self) -> None:
        choose("randomise", self.randomise, get_args(Randomise))

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> dict[ScoredMap, float]:
        """Return the value for importance and, if the method measures it, for uncertainty."""
        trained, random = (
            maps_of_explanation(method(network, image, seed=seed))
            for network in (encoder, randomise_encoder(encoder, self.randomise))
        )
        return {
            name: float(relative_change(resolved_entropy(trained[name]), resolved_entropy(random[name])))
            for name in trained
        }


NAMED = (
    EncoderMetric(
        name="emprt",
        better="higher",
        needs="weights",
        description="efficient model parameter randomisation test: relative change of the map's histogram entropy when "
        "the encoder is randomised",
        citation="Hedström et al. 2024",
        section="sanity checks, table 1",
        maps=("importance", "uncertainty"),
        score=EmprtScore(),
    ),
)
