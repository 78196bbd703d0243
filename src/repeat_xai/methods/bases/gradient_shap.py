"""GradientSHAP (Lundberg and Lee 2017), label-free: integrated gradients at random points of the path.

E[(x + ε − b) · ∂g/∂x̃ at b + α(x + ε − b)]        α ~ U(0, 1), ε ~ N(0, σ²)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.engine.targets import Target
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import FILLS, check_options
from repeat_xai.methods.bases.captum_internals import input_baseline_x_gradient
from repeat_xai.methods.bases.label_free import COPIES_PER_BATCH, attribute, deviation, own_code_calls
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class GradientShap:
    """GradientSHAP: mean gradient at random points between a filled image b and the image with noise on it."""

    title: ClassVar[str] = "GradientSHAP"
    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Lundberg and Lee 2017"

    samples: int = 50
    noise: float = 0.1
    """Standard deviation σ, as a share of the range of the image's values."""
    fill: str = "mean"
    channels: str = "sum_abs"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def calls(self) -> int:
        """Encoder calls for an image."""
        return own_code_calls(self) + self.samples

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the attribution of each pixel."""
        from captum.attr import NoiseTunnel

        return attribute(
            self,
            encoder,
            image,
            lambda g, x: NoiseTunnel(input_baseline_x_gradient(g)).attribute(
                x,
                nt_samples=self.samples,
                nt_samples_batch_size=COPIES_PER_BATCH,
                stdevs=deviation(x, self.noise),
                draw_baseline_from_distrib=True,
                baselines=FILLS[self.fill](x, encoder),
            ),
            seed=seed,
        )


NAMED = {"gradient_shap": GradientShap()}
