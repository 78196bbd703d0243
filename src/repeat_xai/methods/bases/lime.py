"""LIME (Ribeiro et al. 2016), label-free: g near the image as a sum over its parts, by weighted ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor

from repeat_xai.errors import at_least
from repeat_xai.methods.bases.features import Features, Squares
from repeat_xai.methods.bases.label_free import Reference, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.methods.bases.surrogates import attribute_parts
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

WIDTH, RIDGE = 0.25, 1.0
"""As the authors' explainer of images has them."""


def alike(_: object, __: object, kept: Tensor, **___: object) -> Tensor:
    """exp(−d²/2w²), d = 1 − √(share kept): the cosine distance of which parts are kept from all of them."""
    away = 1 - kept.double().mean().sqrt()
    return torch.exp(-(away**2) / (2 * WIDTH**2))


@final
@dataclass(frozen=True, kw_only=True)
class Lime:
    """How much g rises with each part, among copies that are like the image."""

    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Ribeiro et al. 2016"

    samples: int = 500
    features: Features | Tensor = Squares()
    """Which pixels are taken away together."""
    baseline: str = "zero"
    channels: str = "mean"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)
        at_least("samples", self.samples, 3)

    @property
    def calls(self) -> int:
        return references(self) + self.samples

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr
        from captum._utils.models.linear_model import SkLearnRidge

        return attribute_parts(
            self, encoder, image, lambda g: attr.Lime(g, SkLearnRidge(alpha=RIDGE), alike), seed=seed
        )
