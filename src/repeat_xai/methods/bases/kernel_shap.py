"""Kernel SHAP (Lundberg and Lee 2017), label-free: Shapley values of parts of the image by regression.

g(the parts in S) ≈ φ₀ + Σ φᵢ over S        S drawn as the Shapley kernel weighs it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor

from repeat_xai.errors import at_least
from repeat_xai.methods.bases.features import Features, Squares
from repeat_xai.methods.bases.label_free import Reference, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.methods.bases.surrogates import attribute_parts
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class KernelShap:
    """What each part of the image adds to g, averaged over all orders of adding them."""

    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Lundberg and Lee 2017"

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

        return attribute_parts(self, encoder, image, attr.KernelShap, seed=seed)
