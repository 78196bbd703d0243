"""Perturbations change the image or the encoder a little in each pass of `Spread`, and bring its map back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, final, get_args, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.errors import ConfigurationError, EncoderError, choose, expect_number
from repeat_xai.seeds import uniforms
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Per = Literal["channel", "pixel"]
CROP_CORNERS = 4


class Pass(NamedTuple):
    """The encoder and the image of one pass, and how its map relates to the unchanged image."""

    encoder: Encoder
    image: Image
    move_back: Callable[[Map], Map] = lambda importance: importance
    """Turns the map of the pass into a map of the unchanged image, with NaN where the pass did not see it."""
    move_parts: Callable[[Tensor], Tensor] = lambda parts: parts
    """Turns numbered parts of the unchanged image [channels, height, width] into those of the image of the pass."""


@runtime_checkable
class Perturbation(Protocol):
    """A change of the image or the encoder that depends on the number of the pass and on a seed."""

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass: ...


@final
@dataclass(frozen=True, kw_only=True)
class InputDropout:
    """Set values of the image to the mean colour at random, in the paper with probability ½ (Wang et al. 2019)."""

    keep: float = 0.5
    """Probability that a value is kept."""
    rescale: bool = True
    """Whether kept values are divided by `keep`, as torch's dropout does."""
    per: Per = "channel"
    """Whether each channel of a pixel is dropped by itself, as torch's dropout does, or all of them together."""

    def __post_init__(self) -> None:
        choose("per", self.per, get_args(Per))
        expect_number("keep", self.keep)
        if not 0 < self.keep < 1:
            raise ConfigurationError(f"keep must lie between 0 and 1, not be {self.keep}")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        channels, height, width = image.pixels.shape
        drawn = _uniforms((channels if self.per == "channel" else 1, height, width), seed)
        kept = (drawn < self.keep).to(image.pixels) / (self.keep if self.rescale else 1)
        return Pass(encoder, replace(image, pixels=image.pixels * kept))


@final
@dataclass(frozen=True, kw_only=True)
class Noise:
    """Add Gaussian noise to every value."""

    deviation: float = 0.1
    """Standard deviation, as a share of the range of the image's values."""

    def __post_init__(self) -> None:
        expect_number("deviation", self.deviation)
        if self.deviation <= 0:
            raise ConfigurationError(f"deviation must be above zero, not {self.deviation}")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        low, high = image.pixels.aminmax()
        noise = torch.special.ndtri(_uniforms(image.pixels.shape, seed).clamp_min(2**-53)).to(image.pixels)
        return Pass(encoder, replace(image, pixels=image.pixels + self.deviation * (high - low) * noise))


@final
@dataclass(frozen=True, kw_only=True)
class Flips:
    """Show the image and its mirror image in turn, and with `vertical` both upside down as well.

    A deterministic base gives no further information after two passes, or four with `vertical`.
    """

    vertical: bool = False

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        axes = [axis for axis, turn in ((-1, number % 2), (-2, self.vertical and number // 2 % 2)) if turn]
        flipped = replace(image, pixels=image.pixels.flip(axes))
        return Pass(encoder, flipped, lambda importance: importance.flip(axes), lambda parts: parts.flip(axes))


@final
@dataclass(frozen=True, kw_only=True)
class Crops:
    """Crop to each corner in turn and enlarge the crop to the whole size; how much is cut off is drawn at random."""

    least: float = 0.8
    """Smallest share of each side that is kept; at least one half, so that the four corners cover the image."""

    def __post_init__(self) -> None:
        expect_number("least", self.least)
        if not 0.5 <= self.least < 1:
            raise ConfigurationError(f"least must be at least 0.5 and below 1, not {self.least}")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        height, width = image.pixels.shape[1:]
        share = self.least + (1 - self.least) * float(_uniforms((1,), seed))
        rows, columns = max(1, round(share * height)), max(1, round(share * width))
        top, left = (height - rows) * (number % 2), (width - columns) * (number // 2 % 2)
        corner = (..., slice(top, top + rows), slice(left, left + columns))

        def move_back(importance: Map) -> Map:
            whole = torch.full_like(importance, torch.nan)
            whole[corner] = F.interpolate(importance[None, None], (rows, columns), mode="bilinear")[0, 0]
            return whole

        def move_parts(parts: Tensor) -> Tensor:
            return F.interpolate(parts[None, *corner].double(), (height, width), mode="nearest-exact")[0].long()

        enlarged = F.interpolate(image.pixels[None, *corner], (height, width), mode="bilinear")[0]
        return Pass(encoder, replace(image, pixels=enlarged), move_back, move_parts)


@final
@dataclass(frozen=True, kw_only=True)
class McDropout:
    """Leave the encoder's own dropout on (Gal and Ghahramani 2016).

    Dropout is drawn for a whole batch at once, so with RELAX as the base the map depends on the batch size.
    """

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        if not isinstance(encoder, TorchEncoder) or not _dropouts(encoder.module):
            raise EncoderError(f"{encoder.name} has no dropout to leave on; use InputDropout or Noise")
        return Pass(replace(encoder, module=_Dropping(encoder.module), runtime="torch", stochastic=True), image)


@final
@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Use several encoders in turn, which must have the same preprocessing.

    Every map is divided by its mean magnitude, since codes of different networks have different lengths.
    """

    encoders: tuple[Encoder, ...]

    def __post_init__(self) -> None:
        encoders = self.encoders if isinstance(self.encoders, tuple) else ()
        if len(encoders) < 2 or not all(isinstance(encoder, Encoder) for encoder in encoders):
            raise ConfigurationError("an ensemble is a tuple of at least two encoders made with load_encoder")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        chosen = self.encoders[number % len(self.encoders)]
        if chosen.preprocessing != encoder.preprocessing:
            raise ConfigurationError(f"{chosen.name} and {encoder.name} do not take the same images")
        return Pass(chosen, image, _divided_by_mean)


PERTURBATIONS: dict[str, Perturbation] = {
    "dropout": InputDropout(),
    "noise": Noise(),
    "flips": Flips(),
    "crops": Crops(),
    "mc_dropout": McDropout(),
}
"""Perturbations by name, without `Ensemble`, which needs to be given encoders."""


@final
class _Dropping(nn.Module):
    """A network whose dropout layers act as in training, and all others as in evaluation."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> Tensor:
        layers = _dropouts(self.module)
        before = [layer.training for layer in layers]
        for layer in layers:
            layer.training = True
        try:
            features: Tensor = self.module(images)
            return features
        finally:
            for layer, training in zip(layers, before, strict=True):
                layer.training = training


def _divided_by_mean(importance: Map) -> Map:
    """Return the map divided by its mean magnitude."""
    return importance / importance.abs().mean().clamp_min(torch.finfo(importance.dtype).tiny)


def _dropouts(module: nn.Module) -> list[nn.Module]:
    """Return the dropout layers of a network that drop anything."""
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    return [part for part in module.modules() if isinstance(part, kinds) and part.p > 0]


def _uniforms(shape: tuple[int, ...], seed: int) -> Tensor:
    """Return uniform random numbers on [0, 1)."""
    count = torch.Size(shape).numel()
    return torch.from_numpy(uniforms(seed, start=0, stop=1, width=count)[0]).view(shape)
