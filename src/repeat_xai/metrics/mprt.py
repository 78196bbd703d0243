"""MPRT (Adebayo et al. 2018): does a map change as the encoder loses its training, layer by layer?

    ρ(e(f), e(f_l))  and  SSIM(e(f), e(f_l))            f_l the encoder with its layers randomised as far as l

Near zero once the layers that matter are gone, as it should be: a map that stays does not depend on what was learned.
The undisturbed encoder, for which both are 1, is not among the layers. All maps are drawn from the same seed.
Undefined, NaN, where a map is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final, get_args

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.metrics.emprt import Of, map_of
from repeat_xai.metrics.randomisation import Order, Randomise, forgetting
from repeat_xai.metrics.spearman import spearman
from repeat_xai.metrics.ssim import ssim
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from jaxtyping import Float


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Mprt:
    """How alike the maps of the trained encoder and of a randomised one are, after each layer."""

    layers: tuple[str, ...]
    """In the order in which they were randomised."""
    spearman: Float[Tensor, "layers images"]
    ssim: Float[Tensor, "layers images"]


def mprt(
    method: Callable[..., Explanation],
    encoder: Encoder,
    images: Sequence[Image],
    *,
    of: Of = "importance",
    randomise: Randomise = "quantus",
    order: Order = "top_down",
    seed: int,
) -> Mprt:
    """By a method that explains, with layers randomised from the last to the first, from the first, or each alone."""
    choose("of", of, get_args(Of))
    if not images:
        raise ConfigurationError("there are no images to explain")
    steps = forgetting(encoder, randomise, order=order)
    trained = [map_of(method(encoder, image, seed=seed), of) for image in images]
    layers: list[str] = []
    rows: tuple[list[Tensor], list[Tensor]] = ([], [])
    for layer, blank in steps:
        random = [map_of(method(blank, image, seed=seed), of) for image in images]
        layers.append(layer)
        for row, alike in zip(rows, (spearman, ssim), strict=True):
            row.append(torch.stack([alike(one, other) for one, other in zip(trained, random, strict=True)]))
    return Mprt(layers=tuple(layers), spearman=torch.stack(rows[0]), ssim=torch.stack(rows[1]))
