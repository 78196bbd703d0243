"""One thing seen a little differently in every pass, and the way back from what is found to the image as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, final, get_args, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.errors import ConfigurationError, EncoderError, choose
from repeat_xai.seeds import uniforms
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Per = Literal["channel", "pixel"]


class Pass(NamedTuple):
    """What one pass explains."""

    encoder: Encoder
    image: Image
    back: Callable[[Map], Map] = lambda found: found
    """Its map as one of the image itself; NaN where it did not look."""
    forth: Callable[[Tensor], Tensor] = lambda parts: parts
    """Numbered parts of the image itself [channels, height, width] as those of what it explains."""


@runtime_checkable
class Perturbation(Protocol):
    """Pass number so-and-so of a seed."""

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass: ...


@final
@dataclass(frozen=True, kw_only=True)
class InputDropout:
    """Values of the image set to the mean colour at random: the paper's, with probability ½ (Wang et al. 2019)."""

    keep: float = 0.5
    rescale: bool = True
    """Whether what is kept is divided by `keep`, as torch's dropout does."""
    per: Per = "channel"
    """Whether the channels of a pixel are dropped apart, as torch's dropout does, or together."""

    def __post_init__(self) -> None:
        choose("per", self.per, get_args(Per))
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
    """Gaussian noise on every value."""

    deviation: float = 0.1
    """As a share of the range of the image's values."""

    def __post_init__(self) -> None:
        if not 0 < self.deviation < float("inf"):
            raise ConfigurationError(f"deviation must be a number above zero, not {self.deviation}")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        low, high = image.pixels.aminmax()
        noise = torch.special.ndtri(_uniforms(image.pixels.shape, seed).clamp_min(2**-53)).to(image.pixels)
        return Pass(encoder, replace(image, pixels=image.pixels + self.deviation * (high - low) * noise))


@final
@dataclass(frozen=True, kw_only=True)
class Flips:
    """The image and its mirror image in turn; with `vertical`, upside down as well. Without noise in the base, two
    passes, or four, say all."""

    vertical: bool = False

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        axes = [axis for axis, turn in ((-1, number % 2), (-2, self.vertical and number // 2 % 2)) if turn]
        flipped = replace(image, pixels=image.pixels.flip(axes))
        return Pass(encoder, flipped, lambda found: found.flip(axes), lambda parts: parts.flip(axes))


@final
@dataclass(frozen=True, kw_only=True)
class Crops:
    """Each corner in turn, enlarged to the whole; how much is cut off is drawn at random."""

    least: float = 0.8
    """The smallest share of each side that is left; half at least, so that the corners cover the image."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.least < 1:
            raise ConfigurationError(f"least must be at least 0.5 and below 1, not {self.least}")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        height, width = image.pixels.shape[1:]
        share = self.least + (1 - self.least) * float(_uniforms((1,), seed))
        rows, columns = max(1, round(share * height)), max(1, round(share * width))
        top, left = (height - rows) * (number % 2), (width - columns) * (number // 2 % 2)
        corner = (..., slice(top, top + rows), slice(left, left + columns))

        def back(found: Map) -> Map:
            whole = torch.full_like(found, torch.nan)
            whole[corner] = F.interpolate(found[None, None], (rows, columns), mode="bilinear")[0, 0]
            return whole

        def forth(parts: Tensor) -> Tensor:
            return F.interpolate(parts[None, *corner].double(), (height, width), mode="nearest-exact")[0].long()

        seen = F.interpolate(image.pixels[None, *corner], (height, width), mode="bilinear")[0]
        return Pass(encoder, replace(image, pixels=seen), back, forth)


@final
@dataclass(frozen=True, kw_only=True)
class McDropout:
    """The encoder's own dropout left on (Gal and Ghahramani 2016). What is dropped is drawn for a batch at a time, so
    that under RELAX the map depends on how many copies go through the encoder at once."""

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        if not isinstance(encoder, TorchEncoder) or not _dropouts(encoder.module):
            raise EncoderError(f"{encoder.name} has no dropout to leave on; use InputDropout or Noise")
        return Pass(replace(encoder, module=_Dropping(encoder.module), runtime="torch", stochastic=True), image)


@final
@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Each of several encoders in turn, which must take the same images as the one asked after. Every map is divided
    by its mean magnitude, since codes of different networks have different sizes."""

    encoders: tuple[Encoder, ...]

    def __post_init__(self) -> None:
        encoders = self.encoders if isinstance(self.encoders, tuple) else ()
        if len(encoders) < 2 or not all(isinstance(one, Encoder) for one in encoders):
            raise ConfigurationError("an ensemble is a tuple of at least two encoders made with load_encoder")

    def __call__(self, encoder: Encoder, image: Image, *, number: int, seed: int) -> Pass:
        chosen = self.encoders[number % len(self.encoders)]
        if chosen.preprocessing != encoder.preprocessing:
            raise ConfigurationError(f"{chosen.name} and {encoder.name} do not take the same images")
        return Pass(chosen, image, lambda found: found / found.abs().mean().clamp_min(torch.finfo(found.dtype).tiny))


PERTURBATIONS: dict[str, Perturbation] = {
    "dropout": InputDropout(),
    "noise": Noise(),
    "flips": Flips(),
    "crops": Crops(),
    "mc_dropout": McDropout(),
}
"""Those that need nothing else to be known."""


@final
class _Dropping(nn.Module):
    """A network whose dropout layers, and nothing else, act as in training."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, images: Tensor) -> Tensor:
        layers = _dropouts(self.module)
        before = [layer.training for layer in layers]
        for layer in layers:
            layer.training = True
        try:
            found: Tensor = self.module(images)
            return found
        finally:
            for layer, training in zip(layers, before, strict=True):
                layer.training = training


def _dropouts(module: nn.Module) -> list[nn.Module]:
    kinds = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    return [part for part in module.modules() if isinstance(part, kinds) and part.p > 0]


def _uniforms(shape: tuple[int, ...], seed: int) -> Tensor:
    count = torch.Size(shape).numel()
    return torch.from_numpy(uniforms(seed, start=0, stop=1, width=count)[0]).view(shape)
