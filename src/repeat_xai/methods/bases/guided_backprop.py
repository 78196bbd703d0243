"""Guided backpropagation (Springenberg et al. 2015), label-free: saliency by way of what speaks for, at every ReLU."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from torch import nn

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.methods.bases.label_free import Reference, attribute_here, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class GuidedBackprop:
    """Saliency in which a ReLU passes back only what is above zero; without a ReLU it is saliency."""

    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Springenberg et al. 2015"

    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def calls(self) -> int:
        return references(self) + 1

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        if isinstance(encoder, TorchEncoder) and not any(isinstance(m, nn.ReLU) for m in encoder.module.modules()):
            warnings.warn(f"{encoder.name} has no nn.ReLU: its guided backpropagation is saliency", stacklevel=2)
        return attribute_here(self, encoder, image, lambda g, x: attr.GuidedBackprop(g).attribute(x), seed=seed)
