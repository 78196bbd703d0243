"""Saliency (Simonyan et al. 2014), label-free: the gradient ∂g/∂x̃ at x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.engine.targets import Target
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.label_free import attribute_at_image, own_code_calls
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class Saliency:
    """Saliency: how fast the representation changes as a pixel changes."""

    title: ClassVar[str] = "Saliency"
    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Simonyan et al. 2014"

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

        return attribute_at_image(
            self, encoder, image, lambda g, x: attr.Saliency(g).attribute(x, abs=False), seed=seed
        )


NAMED = {"saliency": Saliency()}
