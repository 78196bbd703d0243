"""A scalar to explain where there is no class (Crabbé and van der Schaar 2022).

    g(x̃) = ⟨h, f(x̃)⟩        h = f(x), held fixed; or the mean code of reference images:
                              then the pixels that make the image like those

Captum attributes it to the image as it would a class score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from repeat_xai.calls import metering, tell
from repeat_xai.encoders.module import TorchEncoder, evaluating, full_precision
from repeat_xai.engine.batches import checked
from repeat_xai.errors import ConfigurationError, EncoderError, RepeatError, lacks_memory, reason
from repeat_xai.importance.channels import CHANNELS
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

Reference = Image | tuple[Image, ...]
AT_ONCE = 8
"""Copies of the image through the encoder at a time: memory does not grow with steps or samples."""


@runtime_checkable
class LabelFree(Protocol):
    """A method that explains the scalar."""

    @property
    def channels(self) -> str: ...
    @property
    def reference(self) -> Reference | None: ...
    @property
    def gradients(self) -> bool: ...


@final
class Alignment(nn.Module):
    """g: images → a number each, what Captum takes in place of a class score."""

    def __init__(self, encoder: Encoder, code: Float[Tensor, " dim"], *, gradients: bool) -> None:
        super().__init__()
        self.encode = encoder.module if gradients and isinstance(encoder, TorchEncoder) else encoder
        self.name = encoder.name
        self.code = code

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, " batch"]:
        return encoded(self.encode, images, self.name) @ self.code


def encoded(encode: Callable[[Tensor], Tensor], images: Tensor, name: str) -> Float[Tensor, "batch dim"]:
    """One code an image, each call told; a network that writes into its input writes into a copy."""
    with metering() as meter:
        codes = checked(encode(images.clone()), name, len(images))
    if not meter.calls:
        tell(len(images))
    return codes


def attribute(
    method: LabelFree,
    encoder: Encoder,
    image: Image,
    attribution: Callable[[Alignment, Tensor], Tensor],
    *,
    seed: int,
) -> Map:
    """What Captum attributes to each pixel, in float64; the encoder and all randomness are as before afterwards."""
    expect(encoder, image)
    if method.gradients:
        _expect_gradients(encoder, type(method).__name__)
    module = encoder.module if isinstance(encoder, TorchEncoder) else nn.Identity()
    name, reference = f"{type(method).__name__} of {encoder.name}", method.reference
    others = (image,) if reference is None else (reference,) if isinstance(reference, Image) else reference
    seed = fold(seed, image.photo.digest)
    try:
        with evaluating(module), full_precision(), seeded(seed), _quietly(), torch.inference_mode(False):
            with torch.no_grad():
                codes = [encoded(encoder, _pixels(encoder, other), encoder.name) for other in others]
            g = Alignment(encoder, torch.cat(codes).mean(0), gradients=method.gradients)
            found = attribution(g, _pixels(encoder, image).requires_grad_(method.gradients))
    except RepeatError:
        raise
    except Exception as error:  # any module may fail in any way
        why = "out of memory" if lacks_memory(error) else reason(error)
        raise EncoderError(f"{name} fails: {why}") from error
    if not isinstance(found, Tensor) or found.shape != (1, *image.pixels.shape):
        shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(f"{name} gave {shape}, not a value for each of {[1, *image.pixels.shape]}")
    if not found.isfinite().all():
        raise EncoderError(f"{name} gave NaN or infinite values")
    return CHANNELS[method.channels](found[0].detach().double().cpu())


def _pixels(encoder: Encoder, image: Image) -> Float[Tensor, "1 channels height width"]:
    return image.pixels.detach().to(encoder.device, encoder.dtype)[None].clone()


def _expect_gradients(encoder: Encoder, method: str) -> None:
    if not isinstance(encoder, TorchEncoder):
        raise EncoderError(f"{encoder.name} gives no gradients, which {method} needs; use a method without")
    if encoder.dtype not in (torch.float32, torch.float64):
        half = str(encoder.dtype).removeprefix("torch.")
        raise EncoderError(f"{encoder.name} has weights in {half}, whose gradients are too coarse; load it in float32")


def references(method: LabelFree) -> int:
    """How many codes are made before the scalar is known."""
    return len(method.reference) if isinstance(method.reference, tuple) else 1


def deviation(pixels: Tensor, noise: float) -> float:
    """Noise as a share of the range of the image's values → its standard deviation."""
    low, high = pixels.detach().aminmax()
    return noise * float(high - low)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Captum draws from torch's and numpy's global generators: both set for the block, and as they were after it."""
    before = np.random.get_state()
    devices = range(torch.cuda.device_count())
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            np.random.set_state(before)


@contextmanager
def _quietly() -> Iterator[None]:
    """Captum tells of hooks that it takes off again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="captum")
        yield
