"""Input × gradient (Shrikumar et al. 2016), label-free: x · ∂g/∂x̃ at x."""

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
class InputXGradient:
    """Input × gradient: saliency times the pixel's difference from the mean colour."""

    title: ClassVar[str] = "Input × gradient"
    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Shrikumar et al. 2016"

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

        return attribute_at_image(self, encoder, image, lambda g, x: attr.InputXGradient(g).attribute(x), seed=seed)


NAMED = {"input_x_gradient": InputXGradient()}
