"""The scalar that label-free methods explain, where there is no class (Crabbé and van der Schaar 2022).

    g(x̃) = ⟨t, f(x̃)⟩        t = f(x), held fixed, the code of the image itself; or that of another target, which then
                              asks which pixels make the image similar to it; for a contrast a − b, for a direction d

Captum attributes g to the image as it would attribute a class score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import torch
from torch import Tensor, nn

from repeat_xai.encoders.calls import add_calls, metering
from repeat_xai.encoders.codes import checked_codes
from repeat_xai.encoders.torch_encoder import TorchEncoder, evaluating, full_precision
from repeat_xai.encoders.torch_state import seeded
from repeat_xai.engine.steadiness import Behaviour, behaviour_of
from repeat_xai.engine.targets import Target, resolve
from repeat_xai.errors import ConfigurationError, EncoderError, RepeatError, lacks_memory, reason
from repeat_xai.methods.bases.base_options import CHANNELS
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

COPIES_PER_BATCH = 8
"""Copies of the image per batch, so that memory does not grow with the number of steps or samples."""
COPIES_PER_GPU_BATCH = 64
"""Copies per batch on a GPU, where the size of a batch does not change which random numbers are drawn."""
FLAT = 1e-2
"""A gradient times the input that sums to less than this share of g is little more than rounding."""


@runtime_checkable
class LabelFree(Protocol):
    """What `attribute` needs to know of a method."""

    @property
    def channels(self) -> str: ...
    @property
    def target(self) -> Target | None: ...
    @property
    def gradients(self) -> bool: ...


@final
class Alignment(nn.Module):
    """The scalar g as a module: one number for each image, which Captum takes in place of a class score."""

    def __init__(self, encoder: Encoder, code: Float[Tensor, " dim"], *, gradients: bool, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.encode = encoder.module if gradients and isinstance(encoder, TorchEncoder) else encoder
        self.name = encoder.name
        self.code = code

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, " batch"]:
        codes = encoded(self.encode, images, self.name, self.behaviour)
        if codes.shape[1] != len(self.code):
            raise ConfigurationError(f"the target has a code of {len(self.code)} values, the image {codes.shape[1]}")
        if images.requires_grad and not codes.requires_grad:
            raise EncoderError(f"{self.name} passes no gradient on to its images; use a method without gradients")
        return codes @ self.code.to(codes.dtype)


def copies_per_batch(encoder: Encoder) -> int:
    """Return how many copies of the image go through the encoder at a time."""
    return COPIES_PER_GPU_BATCH if encoder.device.type == "cuda" else COPIES_PER_BATCH


def encoded(
    encode: Callable[[Tensor], Tensor], images: Tensor, name: str, behaviour: Behaviour
) -> Float[Tensor, "batch dim"]:
    """Return one code for each image, in float32 or better, and count the calls.

    The encoder is given a copy of the images, since it may write into its input.
    """
    with metering() as meter, behaviour.isolated():
        output = encode(images.clone())
    codes = checked_codes(output, name, rows=len(images), device=images.device)
    if not meter.calls:
        add_calls(len(images))
    return codes.to(torch.promote_types(codes.dtype, torch.float32))


def attribute(
    method: LabelFree,
    encoder: Encoder,
    image: Image,
    attribution: Callable[[Alignment, Tensor], Tensor],
    *,
    seed: int,
) -> Map:
    """Return what Captum attributes to each pixel, in float64.

    The encoder's state and the global random generators are as before afterwards.
    """
    expect(encoder, image)
    _expect_suitable(encoder, type(method).__name__, gradients=method.gradients)
    module = encoder.module if isinstance(encoder, TorchEncoder) else nn.Identity()
    name = f"{type(method).__name__} of {encoder.name}"
    seed = fold(seed, image.photo.digest)
    behaviour = behaviour_of(encoder, image.pixels.shape)
    try:
        with (
            seeded(seed, encoder.device),
            evaluating(module),
            full_precision(),
            _quietly(),
            torch.inference_mode(False),
        ):
            code = _code(method.target, encoder, image, behaviour)
            g = Alignment(encoder, code, gradients=method.gradients, behaviour=behaviour)
            attributions = attribution(g, _pixels(encoder, image).requires_grad_(method.gradients))
    except RepeatError:
        raise
    except Exception as error:  # a module may raise any error
        why = "out of memory" if lacks_memory(error) else reason(error)
        raise EncoderError(f"{name} fails: {why}") from error
    if not isinstance(attributions, Tensor) or attributions.shape != (1, *image.pixels.shape):
        shape = list(attributions.shape) if isinstance(attributions, Tensor) else type(attributions).__name__
        raise ConfigurationError(f"{name} gave {shape}, not a value for each of {[1, *image.pixels.shape]}")
    if not attributions.isfinite().all():
        raise EncoderError(f"{name} gave NaN or infinite values")
    return CHANNELS[method.channels](attributions[0].detach().double().cpu())


def attribute_at_image(
    method: LabelFree,
    encoder: Encoder,
    image: Image,
    attribution: Callable[[Alignment, Tensor], Tensor],
    *,
    seed: int,
) -> Map:
    """Do the same as `attribute` for a gradient at the image itself, and warn where that gradient vanishes.

    It vanishes where ½‖f‖² does not change: where all codes have the same length.
    """

    def with_warning(g: Alignment, x: Tensor) -> Tensor:
        attributions = attribution(g, x)
        if method.target is None and (attributions * x).abs().sum() < FLAT * (g.code @ g.code):
            warnings.warn(
                f"{encoder.name}, {encoder.weights}: codes of constant length have no gradient at the image; "
                "the map is rounding: give a target, or use integrated gradients or RELAX",
                stacklevel=2,
            )
        return attributions

    return attribute(method, encoder, image, with_warning, seed=seed)


def _code(target: Target | None, encoder: Encoder, image: Image, behaviour: Behaviour) -> Float[Tensor, " dim"]:
    """Return the vector t of the scalar, in float32 or better."""
    if target is not None:  # the code may have been made in inference mode, where autograd cannot use it
        return resolve(encoder, target).vector.to(torch.promote_types(encoder.dtype, torch.float32)).clone()
    with torch.no_grad():
        code = encoded(encoder, _pixels(encoder, image), encoder.name, behaviour)
    if not code.any():
        raise EncoderError(f"{encoder.name} gives a code of zeros, which is similar to nothing")
    return code.mean(0)


def _pixels(encoder: Encoder, image: Image) -> Float[Tensor, "1 channels height width"]:
    """Return the image as a batch of one, on the encoder's device and in its precision."""
    return image.pixels.detach().to(encoder.device, encoder.dtype)[None].clone()


def _expect_suitable(encoder: Encoder, method: str, *, gradients: bool) -> None:
    """Refuse an encoder without the gradients that a method needs, and settings that would have no effect."""
    precision = str(encoder.dtype).removeprefix("torch.")
    if not isinstance(encoder, TorchEncoder):
        if gradients:
            raise EncoderError(f"{encoder.name} gives no gradients, which {method} needs; use another method")
    elif gradients and precision not in ("float32", "float64"):
        raise EncoderError(f"{encoder.name} has weights in {precision}, too coarse for gradients; load it in float32")
    elif encoder.precision not in ("auto", precision) or encoder.runtime not in ("auto", "torch"):
        raise ConfigurationError(f"{method} is run by torch in {precision}, as the weights are; leave both at auto")


def own_code_calls(method: LabelFree) -> int:
    """Return how often an image is encoded before its scalar is known; another target is encoded once for all."""
    return int(method.target is None)


def deviation(pixels: Tensor, noise: float) -> float:
    """Return the standard deviation of noise that is given as a share of the range of the image's values."""
    low, high = pixels.detach().aminmax()
    return noise * float(high - low)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence Captum's warnings of hooks, which it removes again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="captum")
        yield
