"""Input × gradient (Shrikumar et al. 2016), label-free: x · ∂g/∂x̃ at x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.methods.bases.label_free import Reference, attribute_here, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class InputXGradient:
    """Saliency, weighed by how far the pixel is from the mean colour."""

    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Shrikumar et al. 2016"

    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def calls(self) -> int:
        return references(self) + 1

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        return attribute_here(self, encoder, image, lambda g, x: attr.InputXGradient(g).attribute(x), seed=seed)
