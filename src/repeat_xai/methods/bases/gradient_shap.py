"""GradientSHAP (Lundberg and Lee 2017), label-free: integrated gradients at random points of the way.

E[(x + ε − b) · ∂g/∂x̃ at b + α(x + ε − b)]        α ~ U(0, 1), ε ~ N(0, σ²)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.methods.bases.baselines import BASELINES
from repeat_xai.methods.bases.label_free import AT_ONCE, Reference, attribute, deviation, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class GradientShap:
    """Gradients at random points between a baseline and the image with noise on it, averaged."""

    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Lundberg and Lee 2017"

    samples: int = 50
    noise: float = 0.1
    """σ, as a share of the range of the image's values."""
    baseline: str = "zero"
    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def calls(self) -> int:
        return references(self) + self.samples

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum.attr import NoiseTunnel
        from captum.attr._core.gradient_shap import InputBaselineXGradient

        return attribute(
            self,
            encoder,
            image,
            lambda g, x: NoiseTunnel(InputBaselineXGradient(g)).attribute(
                x,
                nt_samples=self.samples,
                nt_samples_batch_size=AT_ONCE,
                stdevs=deviation(x, self.noise),
                draw_baseline_from_distrib=True,
                baselines=BASELINES[self.baseline](x, encoder),
            ),
            seed=seed,
        )
