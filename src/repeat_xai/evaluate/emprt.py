"""eMPRT (Hedström et al. 2024): does a map lose its structure when the encoder loses its training?

    (H_random − H_trained) / H_trained            H the histogram entropy of the map

Above zero if the map of a randomised encoder is the more complex one, as it should be. Undefined, NaN, where the map of
the trained encoder is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import torch

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.evaluate.histogram_entropy import histogram_entropy
from repeat_xai.evaluate.randomise import Randomise, randomised
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

Of = Literal["importance", "uncertainty"]


def emprt(
    method: Callable[..., Explanation],
    encoder: Encoder,
    images: Sequence[Image],
    *,
    of: Of = "uncertainty",
    randomise: Randomise = "quantus",
    seed: int,
) -> Float[Tensor, " images"]:
    """Of each image, by a method that explains: `Repeat()`, `Spread()`, or `Relax().explain`."""
    choose("of", of, get_args(Of))
    if not images:
        raise ConfigurationError("there are no images to explain")
    blank = randomised(encoder, randomise)
    trained, random = (
        torch.stack([histogram_entropy(map_of(method(one, image, seed=seed), of)) for image in images])
        for one in (encoder, blank)
    )
    return change(trained, random, of)


def change(trained: Float[Tensor, " images"], random: Float[Tensor, " images"], of: Of) -> Float[Tensor, " images"]:
    """Of the histogram entropy.

    A randomised encoder's similarities may all lie so near 1 that importance is constant in float32: where they do,
    there is nothing to compare.
    """
    lost = (trained <= 0) | ((random <= 0) & (of == "importance"))
    return torch.where(lost, torch.nan, (random - trained) / trained)


def map_of(explanation: object, of: Of) -> Tensor:
    """The map meant, of a method that explains."""
    if not isinstance(explanation, Explanation):
        found = type(explanation).__name__
        raise ConfigurationError(f"the method gives {found}, no explanation; use Repeat(), Spread() or Relax().explain")
    return explanation.importance if of == "importance" else explanation.uncertainty
