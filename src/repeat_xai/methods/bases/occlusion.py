"""Occlusion (Zeiler and Fergus 2014), label-free: how much g falls when a window of the image is hidden."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from repeat_xai.engine.targets import Target
from repeat_xai.errors import ConfigurationError
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import FILLS, check_options
from repeat_xai.methods.bases.label_free import attribute, copies_per_batch, own_code_calls
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class Occlusion:
    """Occlusion: hide a window at each place; a pixel gets the mean fall of g over the windows that hide it."""

    title: ClassVar[str] = "Occlusion"
    stochastic: ClassVar[bool] = False
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Zeiler and Fergus 2014"

    window: int = 32
    """Side of the window in pixels."""
    stride: int = 16
    """Pixels between two places of the window."""
    fill: str = "mean"
    channels: str = "mean"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.stride > self.window:
            raise ConfigurationError(f"a stride of {self.stride} leaves gaps between windows of {self.window}")

    @property
    def calls(self) -> int:
        """Encoder calls for an image of 224×224 pixels."""
        return own_code_calls(self) + 1 + (math.ceil((224 - self.window) / self.stride) + 1) ** 2

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the attribution of each pixel."""
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
                baselines=FILLS[self.fill](x, encoder),
                perturbations_per_eval=copies_per_batch(encoder),
            ),
            seed=seed,
        )


NAMED = {"occlusion": Occlusion()}
