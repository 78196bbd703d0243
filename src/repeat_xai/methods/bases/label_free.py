"""A scalar to explain where there is no class (Crabbé and van der Schaar 2022).

    g(x̃) = ⟨h, f(x̃)⟩        h = f(x), held fixed; or the mean code of reference images:
                              then the pixels that make the image like those

Captum attributes it to the image as it would a class score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import torch
from torch import Tensor, nn

from repeat_xai.encoders.calls import count_calls, metering
from repeat_xai.encoders.codes import checked_codes
from repeat_xai.encoders.torch_encoder import TorchEncoder, evaluating, full_precision
from repeat_xai.encoders.torch_state import seeded
from repeat_xai.engine.steadiness import Conduct, conduct_of
from repeat_xai.errors import ConfigurationError, EncoderError, RepeatError, lacks_memory, reason
from repeat_xai.methods.bases.channels import CHANNELS
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

Reference = Image | Sequence[Image]
AT_ONCE = 8
"""Copies of the image through the encoder at a time: memory does not grow with steps or samples."""
ON_GPU = 64
"""The same where they come in any number without changing what is drawn."""
FLAT = 1e-2
"""A share of g so small that a gradient of it is rounding, or as good as."""


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

    def __init__(self, encoder: Encoder, code: Float[Tensor, " dim"], *, gradients: bool, conduct: Conduct) -> None:
        super().__init__()
        self.conduct = conduct
        self.encode = encoder.module if gradients and isinstance(encoder, TorchEncoder) else encoder
        self.name = encoder.name
        self.code = code

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, " batch"]:
        codes = encoded(self.encode, images, self.name, self.conduct)
        if codes.shape[1] != len(self.code):
            raise ConfigurationError(f"the reference has a code of {len(self.code)} values, the image {codes.shape[1]}")
        if images.requires_grad and not codes.requires_grad:
            raise EncoderError(f"{self.name} passes no gradient on to its images; use a method without gradients")
        return codes @ self.code


def at_once(encoder: Encoder) -> int:
    """Copies at a time, as suits the device."""
    return ON_GPU if encoder.device.type == "cuda" else AT_ONCE


def encoded(
    encode: Callable[[Tensor], Tensor], images: Tensor, name: str, conduct: Conduct
) -> Float[Tensor, "batch dim"]:
    """One code an image in float32 at least, each call told; a network that writes into its input is given a copy."""
    with metering() as meter, conduct.apart():
        found = encode(images.clone())
    codes = checked_codes(found, name, rows=len(images), device=images.device)
    if not meter.calls:
        count_calls(len(images))
    return codes.to(torch.promote_types(codes.dtype, torch.float32))


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
    _expect_able(encoder, type(method).__name__, gradients=method.gradients)
    module = encoder.module if isinstance(encoder, TorchEncoder) else nn.Identity()
    name, reference = f"{type(method).__name__} of {encoder.name}", method.reference
    others = (image,) if reference is None else (reference,) if isinstance(reference, Image) else reference
    seed = fold(seed, image.photo.digest)
    conduct = conduct_of(encoder, image.pixels.shape)
    try:
        with (
            seeded(seed, encoder.device),
            evaluating(module),
            full_precision(),
            _quietly(),
            torch.inference_mode(False),
        ):
            with torch.no_grad():
                codes = [encoded(encoder, _pixels(encoder, other), encoder.name, conduct) for other in others]
            if len({code.shape for code in codes}) > 1:
                raise ConfigurationError("the references have codes of different lengths; give images of one size")
            if not any(code.any() for code in codes):
                raise EncoderError(f"{encoder.name} gives a code of zeros, with which nothing can agree")
            g = Alignment(encoder, torch.cat(codes).mean(0), gradients=method.gradients, conduct=conduct)
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


def attribute_here(
    method: LabelFree,
    encoder: Encoder,
    image: Image,
    attribution: Callable[[Alignment, Tensor], Tensor],
    *,
    seed: int,
) -> Map:
    """The same for a gradient at the image itself; where that vanishes, as ½‖f‖² does not change, it says so."""

    def watched(g: Alignment, x: Tensor) -> Tensor:
        found = attribution(g, x)
        if method.reference is None and (found * x).abs().sum() < FLAT * (g.code @ g.code):
            warnings.warn(
                f"{encoder.name}, {encoder.weights}: codes of constant length, to which gradients at the image are "
                "blind; what is left is rounding: give a reference, or use integrated gradients or RELAX",
                stacklevel=2,
            )
        return found

    return attribute(method, encoder, image, watched, seed=seed)


def _pixels(encoder: Encoder, image: Image) -> Float[Tensor, "1 channels height width"]:
    return image.pixels.detach().to(encoder.device, encoder.dtype)[None].clone()


def _expect_able(encoder: Encoder, method: str, *, gradients: bool) -> None:
    """Refuse what the encoder cannot do, and what would be asked of it in vain."""
    precision = str(encoder.dtype).removeprefix("torch.")
    if not isinstance(encoder, TorchEncoder):
        if gradients:
            raise EncoderError(f"{encoder.name} gives no gradients, which {method} needs; use a method without")
    elif gradients and precision not in ("float32", "float64"):
        raise EncoderError(f"{encoder.name} has weights in {precision}, too coarse for gradients; load it in float32")
    elif encoder.precision not in ("auto", precision) or encoder.runtime not in ("auto", "torch"):
        raise ConfigurationError(f"{method} is run by torch in {precision}, as the weights are; leave both at auto")


def references(method: LabelFree) -> int:
    """How many codes are made before the scalar is known."""
    return len(method.reference) if isinstance(method.reference, Sequence) else 1


def deviation(pixels: Tensor, noise: float) -> float:
    """Noise as a share of the range of the image's values → its standard deviation."""
    low, high = pixels.detach().aminmax()
    return noise * float(high - low)


@contextmanager
def _quietly() -> Iterator[None]:
    """Captum tells of hooks that it takes off again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="captum")
        yield
