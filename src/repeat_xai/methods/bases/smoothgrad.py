"""SmoothGrad (Smilkov et al. 2017) and VarGrad (Adebayo et al. 2018), label-free.

E or Var of ∂g/∂x̃ at x + ε        ε ~ N(0, σ²)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, final

from repeat_xai.engine.targets import Target
from repeat_xai.errors import at_least, choose
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.label_free import COPIES_PER_BATCH, attribute, deviation, own_code_calls
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Moment = Literal["mean", "variance"]
MOMENTS = {"mean": "smoothgrad", "variance": "vargrad"}
"""Captum's names of the moments."""


@final
@dataclass(frozen=True, kw_only=True)
class SmoothGrad:
    """SmoothGrad, the mean of saliency under noise, or VarGrad, its variance."""

    title: ClassVar[str] = "SmoothGrad"
    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Smilkov et al. 2017; Adebayo et al. 2018"

    samples: int = 50
    noise: float = 0.15
    """Standard deviation σ, as a share of the range of the image's values."""
    moment: Moment = "mean"
    channels: str = "sum_abs"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)
        choose("moment", self.moment, MOMENTS)
        at_least("samples", self.samples, 2 if self.moment == "variance" else 1)

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

        return attribute(
            self,
            encoder,
            image,
            lambda g, x: attr.NoiseTunnel(attr.Saliency(g)).attribute(
                x,
                nt_type=MOMENTS[self.moment],
                nt_samples=self.samples,
                nt_samples_batch_size=COPIES_PER_BATCH,
                stdevs=deviation(x, self.noise),
                abs=False,
            ),
            seed=seed,
        )


NAMED = {"smoothgrad": SmoothGrad(), "vargrad": SmoothGrad(moment="variance")}
