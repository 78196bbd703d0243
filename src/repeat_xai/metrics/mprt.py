"""MPRT (Adebayo et al. 2018): a sanity check of whether a map changes as the encoder's layers are randomised.

    ρ(e(f), e(f_l))  and  SSIM(e(f), e(f_l))            f_l the encoder with its layers randomised as far as layer l

ρ is Spearman's rank correlation and SSIM the structural similarity of the two maps. Both should fall towards zero: a
map that stays the same does not depend on what the encoder learned. The trained encoder itself, for which both are 1,
is not among the layers. All maps are drawn from the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final, get_args

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.metrics.map_similarity import spearman, ssim
from repeat_xai.metrics.metric import (
    MAP_NAMES,
    EncoderMetric,
    ExplainingMethod,
    MapName,
    ScoredMap,
    map_of_explanation,
    maps_of_explanation,
)
from repeat_xai.metrics.randomisation import LayerOrder, Randomise, randomise_layer_by_layer
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from jaxtyping import Float


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Mprt:
    """The similarity of each image's map to that of the trained encoder, after each layer."""

    layers: tuple[str, ...]
    """Names of the layers in the order in which they were randomised."""
    spearman: Float[Tensor, "layers images"]
    ssim: Float[Tensor, "layers images"]


def mprt(
    method: ExplainingMethod,
    encoder: Encoder,
    images: Sequence[Image],
    *,
    map_name: MapName = "importance",
    randomise: Randomise = "quantus",
    order: LayerOrder = "top_down",
    seed: int = 0,
) -> Mprt:
    """Return how similar the maps of a trained encoder and of ever more randomised ones are (Adebayo et al. 2018).

    Spearman's rank correlation and the structural similarity are given for each layer and image. Range of both: −1 to
    1. Lower, near zero, is better. NaN where a map is constant. The method is called once for each image and layer, and
    once more for each image.

    >>> import repeat_xai as rx, torch
    >>> from torch import nn
    >>> encoder = rx.load_encoder(nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 8)))
    >>> image = rx.load_image(torch.arange(768.0).view(3, 16, 16) / 768, encoder)
    >>> method = rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=8))
    >>> result = mprt(method, encoder, [image], seed=0)
    >>> result.layers, result.spearman.shape
    (('2',), torch.Size([1, 1]))
    """
    choose("map_name", map_name, MAP_NAMES)
    if not images:
        raise ConfigurationError("there are no images to explain")
    steps = randomise_layer_by_layer(encoder, randomise, order=order)
    trained = [map_of_explanation(method(encoder, image, seed=seed), map_name) for image in images]
    layers: list[str] = []
    correlations: list[Tensor] = []
    similarities: list[Tensor] = []
    for layer, randomised in steps:
        random = [map_of_explanation(method(randomised, image, seed=seed), map_name) for image in images]
        pairs = list(zip(trained, random, strict=True))
        layers.append(layer)
        correlations.append(torch.stack([spearman(one, other) for one, other in pairs]))
        similarities.append(torch.stack([ssim(one, other) for one, other in pairs]))
    return Mprt(layers=tuple(layers), spearman=torch.stack(correlations), ssim=torch.stack(similarities))


@final
@dataclass(frozen=True, kw_only=True)
class MprtScore:
    """The mean of Spearman's rank correlation over the layers of an encoder, for each map of a method.

    Layers whose map is constant have no correlation and are left out of the mean: in a network without training, the
    similarities of RELAX may all be 1 as far as float32 can tell.
    """

    randomise: Randomise = "quantus"
    order: LayerOrder = "top_down"

    def __post_init__(self) -> None:
        choose("randomise", self.randomise, get_args(Randomise))
        choose("order", self.order, get_args(LayerOrder))

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> dict[ScoredMap, float]:
        """Return the mean for importance and, if the method measures it, uncertainty; NaN if no layer has a value."""
        trained = maps_of_explanation(method(encoder, image, seed=seed))
        correlations: dict[MapName, list[Tensor]] = {name: [] for name in trained}
        for _, randomised in randomise_layer_by_layer(encoder, self.randomise, order=self.order):
            random = maps_of_explanation(method(randomised, image, seed=seed))
            for name, values in correlations.items():
                values.append(spearman(trained[name], random[name]))
        return {name: float(torch.stack(values).nanmean()) for name, values in correlations.items()}


NAMED = (
    EncoderMetric(
        name="mprt",
        better="lower",
        needs="weights",
        description="model parameter randomisation test: rank correlation with the map of the trained encoder, mean "
        "over randomised layers",
        citation="Adebayo et al. 2018",
        maps=("importance", "uncertainty"),
        score=MprtScore(),
    ),
)
