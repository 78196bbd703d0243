"""Occlusion (Zeiler and Fergus 2014), label-free: how much g falls when a window is taken away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.errors import ConfigurationError
from repeat_xai.methods.bases.baselines import BASELINES
from repeat_xai.methods.bases.label_free import Reference, at_once, attribute, references
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class Occlusion:
    """A window slid over the image; a pixel is worth the mean of the windows that hide it."""

    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Zeiler and Fergus 2014"

    window: int = 32
    stride: int = 16
    baseline: str = "zero"
    channels: str = "mean"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)
        if self.stride > self.window:
            raise ConfigurationError(f"steps of {self.stride} leave gaps between windows of {self.window}")

    @property
    def calls(self) -> int:
        """For an image of 224×224."""
        return references(self) + 1 + (math.ceil((224 - self.window) / self.stride) + 1) ** 2

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        from captum import attr

        expect(encoder, image)
        channels, height, width = image.pixels.shape
        if self.window > min(height, width):
            raise ConfigurationError(f"a window of {self.window} is larger than the image, {width}×{height}")
        return attribute(
            self,
            encoder,
            image,
            lambda g, x: attr.Occlusion(g).attribute(
                x,
                sliding_window_shapes=(channels, self.window, self.window),
                strides=(channels, self.stride, self.stride),
                baselines=BASELINES[self.baseline](x, encoder),
                perturbations_per_eval=at_once(encoder),
            ),
            seed=seed,
        )
