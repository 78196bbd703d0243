"""LIME (Ribeiro et al. 2016), label-free: g near the image as a sum over its parts, by weighted ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from torch import Tensor

from repeat_xai.importance.baselines import BASELINES
from repeat_xai.importance.features import Features, Squares, parts_of
from repeat_xai.importance.labelfree import AT_ONCE, Reference, attribute, references
from repeat_xai.importance.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

WIDTH = 0.25
"""Of the kernel in cosine distance, and a ridge of 1: as the authors' explainer of images has them."""


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

    @property
    def calls(self) -> int:
        return references(self) + self.samples

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr
        from captum._utils.models.linear_model import SkLearnRidge
        from captum.attr._core.lime import get_exp_kernel_similarity_function

        alike = get_exp_kernel_similarity_function(kernel_width=WIDTH)
        parts = parts_of(self.features, image)
        return attribute(
            self,
            encoder,
            image,
            lambda g, x: attr.Lime(g, SkLearnRidge(alpha=1.0), alike).attribute(
                x,
                baselines=BASELINES[self.baseline](x, encoder),
                feature_mask=parts.to(x.device),
                n_samples=self.samples,
                perturbations_per_eval=AT_ONCE,
                return_input_shape=False,
            )[0].cpu()[parts],
            seed=seed,
        )
