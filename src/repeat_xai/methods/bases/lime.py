"""LIME (Ribeiro et al. 2016), label-free: a weighted ridge regression of g, near the image, on the image's parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import torch
from torch import Tensor

from repeat_xai.engine.targets import Target
from repeat_xai.errors import at_least
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.captum_internals import ridge_regression
from repeat_xai.methods.bases.features import Features, Squares
from repeat_xai.methods.bases.label_free import own_code_calls
from repeat_xai.methods.bases.surrogates import attribute_parts
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

WIDTH, RIDGE = 0.25, 1.0
"""Width of the kernel and strength of the ridge, as in the authors' explainer of images."""


def similarity_kernel(_: object, __: object, kept: Tensor, **___: object) -> Tensor:
    """Return exp(−d²/2w²), where d = 1 − √(share kept) is the cosine distance between the kept parts and all parts."""
    distance = 1 - kept.double().mean().sqrt()
    return torch.exp(-(distance**2) / (2 * WIDTH**2))


@final
@dataclass(frozen=True, kw_only=True)
class Lime:
    """LIME: how much each part of the image raises g, among copies that are similar to the image."""

    title: ClassVar[str] = "LIME"
    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Ribeiro et al. 2016"

    samples: int = 500
    """Number of copies with hidden parts."""
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

        return attribute_parts(
            self, encoder, image, lambda g: attr.Lime(g, ridge_regression(RIDGE), similarity_kernel), seed=seed
        )


NAMED = {"lime": Lime()}
