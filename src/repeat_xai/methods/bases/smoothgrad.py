"""SmoothGrad (Smilkov et al. 2017) and VarGrad (Adebayo et al. 2018), label-free.

E or Var of ∂g/∂x̃ at x + ε        ε ~ N(0, σ²)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, final

from repeat_xai.errors import at_least, choose
from repeat_xai.methods.bases.label_free import AT_ONCE, Reference, attribute, deviation, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Moment = Literal["mean", "variance"]
MOMENTS = {"mean": "smoothgrad", "variance": "vargrad"}
"""Captum's names."""


@final
@dataclass(frozen=True, kw_only=True)
class SmoothGrad:
    """Saliency under noise: its mean, or its variance."""

    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Smilkov et al. 2017; Adebayo et al. 2018"

    samples: int = 50
    noise: float = 0.15
    """σ, as a share of the range of the image's values."""
    moment: Moment = "mean"
    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)
        choose("moment", self.moment, MOMENTS)
        at_least("samples", self.samples, 2 if self.moment == "variance" else 1)

    @property
    def calls(self) -> int:
        return references(self) + self.samples

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        return attribute(
            self,
            encoder,
            image,
            lambda g, x: attr.NoiseTunnel(attr.Saliency(g)).attribute(
                x,
                nt_type=MOMENTS[self.moment],
                nt_samples=self.samples,
                nt_samples_batch_size=AT_ONCE,
                stdevs=deviation(x, self.noise),
                abs=False,
            ),
            seed=seed,
        )
