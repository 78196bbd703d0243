"""Guided backpropagation (Springenberg et al. 2015), label-free: saliency with negative gradients cut at each ReLU."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from torch import nn

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.targets import Target
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.label_free import attribute_at_image, own_code_calls
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class GuidedBackprop:
    """Guided backpropagation: each ReLU passes back positive gradients only. Without a ReLU it equals saliency."""

    title: ClassVar[str] = "Guided backpropagation"
    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Springenberg et al. 2015"

    channels: str = "sum_abs"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def calls(self) -> int:
        """Encoder calls for an image."""
        return own_code_calls(self) + 1

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the attribution of each pixel."""
        from captum import attr

        if isinstance(encoder, TorchEncoder) and not any(isinstance(m, nn.ReLU) for m in encoder.module.modules()):
            warnings.warn(f"{encoder.name} has no nn.ReLU: its guided backpropagation equals saliency", stacklevel=2)
        return attribute_at_image(self, encoder, image, lambda g, x: attr.GuidedBackprop(g).attribute(x), seed=seed)


NAMED = {"guided_backprop": GuidedBackprop()}
