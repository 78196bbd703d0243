"""Integrated gradients (Sundararajan et al. 2017), label-free.

    (x − b) · ∫₀¹ ∂g/∂x̃ at b + α(x − b) dα

Over all values they sum to g(x) − g(b).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.methods.bases.baselines import BASELINES
from repeat_xai.methods.bases.label_free import Reference, at_once, attribute, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class IntegratedGradients:
    """Gradients summed on the way from a baseline to the image."""

    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = True
    citation: ClassVar[str] = "Sundararajan et al. 2017"

    steps: int = 50
    baseline: str = "zero"
    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)

    @property
    def calls(self) -> int:
        return references(self) + self.steps

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        return attribute(
            self,
            encoder,
            image,
            lambda g, x: attr.IntegratedGradients(g).attribute(
                x, BASELINES[self.baseline](x, encoder), n_steps=self.steps, internal_batch_size=at_once(encoder)
            ),
            seed=seed,
        )
