"""Saliency (Simonyan et al. 2014), label-free: ∂g/∂x̃ at x."""

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
class Saliency:
    """How fast the representation turns away as a pixel changes."""

    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Simonyan et al. 2014"

    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def calls(self) -> int:
        return references(self) + 1

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        return attribute_here(self, encoder, image, lambda g, x: attr.Saliency(g).attribute(x, abs=False), seed=seed)
