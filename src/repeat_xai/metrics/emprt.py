"""eMPRT (Hedström et al. 2024): does a map lose its structure when the encoder loses its training?

    (H_random − H_trained) / H_trained            H the histogram entropy of the map

Above zero if the map of a randomised encoder is the more complex one, as it should be. Undefined, NaN, where the map of
the trained encoder is constant, or float32's rounding has left nothing of a map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

import torch

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.metrics.histogram_entropy import histogram_entropy
from repeat_xai.metrics.randomisation import Randomise, randomised
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from repeat_xai.metrics.metric import Maps, Scores

STEPS = 1000
"""Of float32 that a map must span for its histogram to say anything."""
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
        torch.stack([entropy(map_of(method(one, image, seed=seed), of)) for image in images])
        for one in (encoder, blank)
    )
    return change(trained, random)


def change(trained: Float[Tensor, " images"], random: Float[Tensor, " images"]) -> Float[Tensor, " images"]:
    """Of the entropy, as a share of the trained encoder's."""
    return torch.where(trained > 0, (random - trained) / trained, torch.nan)


def entropy(maps: Maps) -> Scores:
    """Histogram entropy, NaN where rounding has left nothing to count.

    A randomised encoder's similarities may all lie so near 1 that float32, in which explanations hold their maps, has
    but a few values for the importance of all pixels.
    """
    low, high = maps.flatten(-2).aminmax(dim=-1)
    grain = torch.finfo(torch.float32).eps * torch.maximum(low.abs(), high.abs())
    return torch.where(high - low < STEPS * grain, torch.nan, histogram_entropy(maps))


def map_of(explanation: object, of: Of) -> Tensor:
    """The map meant, of a method that explains."""
    if not isinstance(explanation, Explanation):
        found = type(explanation).__name__
        raise ConfigurationError(f"the method gives {found}, no explanation; use Repeat(), Spread() or Relax().explain")
    if of == "uncertainty" and explanation.uncertainty is None:
        raise ConfigurationError("the method does not measure its uncertainty; use Repeat, Relax or Spread")
    return explanation.maps[of]
