"""Integrated gradients (Sundararajan et al. 2017), label-free.

    (x − b) · ∫₀¹ ∂g/∂x̃ at b + α(x − b) dα

The attributions of all values sum to g(x) − g(b).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.engine.targets import Target
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import FILLS, check_options
from repeat_xai.methods.bases.label_free import attribute, copies_per_batch, own_code_calls
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class IntegratedGradients:
    """Integrated gradients: the gradient averaged over a straight path from a filled image b to the image."""

    title: ClassVar[str] = "Integrated gradients"
    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Sundararajan et al. 2017"

    steps: int = 50
    """Points on the path."""
    fill: str = "mean"
    channels: str = "sum_abs"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def calls(self) -> int:
        """Encoder calls for an image."""
        return own_code_calls(self) + self.steps

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
            lambda g, x: attr.IntegratedGradients(g).attribute(
                x, FILLS[self.fill](x, encoder), n_steps=self.steps, internal_batch_size=copies_per_batch(encoder)
            ),
            seed=seed,
        )


NAMED = {"integrated_gradients": IntegratedGradients()}
