"""Kernel SHAP (Lundberg and Lee 2017), label-free: Shapley values of parts of the image, by regression.

g(parts in S) ≈ φ₀ + Σ φᵢ over S        S drawn with the weights of the Shapley kernel
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor

from repeat_xai.engine.targets import Target
from repeat_xai.errors import at_least
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.features import Features, Squares
from repeat_xai.methods.bases.label_free import own_code_calls
from repeat_xai.methods.bases.surrogates import attribute_parts
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class KernelShap:
    """Kernel SHAP: what each part of the image adds to g, averaged over all orders of adding the parts."""

    title: ClassVar[str] = "Kernel SHAP"
    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Lundberg and Lee 2017"

    samples: int = 500
    """Number of sets S."""
    features: Features | Tensor = Squares()
    """The parts: which pixels are hidden together."""
    fill: str = "mean"
    channels: str = "mean"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)
        at_least("samples", self.samples, 3)

    @property
    def calls(self) -> int:
        """Encoder calls for an image."""
        return own_code_calls(self) + self.samples

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the attribution of each pixel."""
        from captum import attr

        return attribute_parts(self, encoder, image, attr.KernelShap, seed=seed)


NAMED = {"kernel_shap": KernelShap()}
