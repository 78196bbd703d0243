"""A target is what the codes of masked copies are compared with.

    None                 s = κ(h̄, h)                    h the code of the image itself
    an Image             s = κ(h̄, t)                    t its code
    a tuple of Images    s = κ(h̄, t)                    t their mean code
    a tensor             s = κ(h̄, t)                    t the tensor: a code
    a Text               s = κ(h̄, t)                    t its code, by the text tower of the encoder
    a Contrast           s = κ(h̄, a) − κ(h̄, b)          a and b the codes of two of the targets above
    a Direction          s = ⟨h̄, d⟩ / ‖d‖               d a code; the kernel κ is not used

h̄ is the code of a masked copy. A target is resolved once for a run and an encoder: its images are encoded then, and not
again for each image that is explained.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.encoders.calls import add_calls, metering
from repeat_xai.encoders.codes import checked_codes
from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.steadiness import behaviour_of
from repeat_xai.errors import ConfigurationError, EncoderError, RepeatError, lacks_memory, reason, shown
from repeat_xai.types import Encoder, Image, expect_encoder
from repeat_xai.types.text import Text, TextEncoder

if TYPE_CHECKING:
    from jaxtyping import Float

IMAGES_PER_BATCH = 16
"""Target images that are encoded together."""
SAME_CODE = 1e-6
"""Codes whose difference is no more than this share of their length count as equal."""
KINDS = "an Image, a tuple of Images, a tensor (a code), a Text, a Direction or a Contrast"

CodeTarget = Image | tuple[Image, ...] | Tensor | Text
"""A target that has a code."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Direction:
    """A direction in the space of codes, for example the weights of a linear probe.

    The similarity of a code is how far it reaches along the direction, ⟨h̄, d⟩ / ‖d‖, in the units of the codes. This
    is so whatever the kernel of the method: a kernel compares two codes, and a direction is not a code.
    """

    code: Float[Tensor, " dim"]
    """The direction d. Its length does not matter."""

    def __post_init__(self) -> None:
        _expect_code("a direction", self.code)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """The question "why this rather than that": the similarity toward one target minus that toward another.

    It is κ(h̄, a) − κ(h̄, b), with a and b the codes of the two targets. It changes its sign with their order.
    """

    toward: CodeTarget
    """The target whose similarity counts for a pixel."""
    away: CodeTarget
    """The target whose similarity counts against a pixel."""

    def __post_init__(self) -> None:
        for target in (self.toward, self.away):
            if isinstance(target, Direction | Contrast) or target is None:
                raise ConfigurationError("a contrast is between two images, sets of images, codes or texts")
            expect_target(target)
        if self.toward is self.away or (isinstance(self.toward, Text) and self.toward == self.away):
            raise _equal_targets()


Target = CodeTarget | Direction | Contrast
"""What an image is compared with, in place of itself."""


@final
@dataclass(frozen=True, eq=False)
class ResolvedTarget:
    """A target whose codes are known, so that it gives similarities."""

    code: Float[Tensor, " dim"] | None = None
    """The code t, a, or the direction d, in float64; None for the image itself."""
    away: Float[Tensor, " dim"] | None = None
    """The code b of a contrast."""
    is_direction: bool = False

    @property
    def vector(self) -> Float[Tensor, " dim"]:
        """The vector whose inner product with a code label-free methods explain: t, d or a − b."""
        assert self.code is not None
        return self.code if self.away is None else self.code - self.away

    @property
    def digest(self) -> str:
        """A text that is the same for equal targets only."""
        codes = [b"" if code is None else code.cpu().numpy().tobytes() for code in (self.code, self.away)]
        return hashlib.sha256(b"/".join([*codes, str(self.is_direction).encode()])).hexdigest()

    def similarities(
        self, kernel: Kernel, own: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]
    ) -> Float[Tensor, " masks"]:
        """Return the similarity of each code, in float64; `own` is the code of the image that is explained."""
        if self.code is None:
            return kernel_values(kernel, own, codes)
        for code in (self.code, self.away):
            if code is not None and len(code) != codes.shape[1]:
                raise ConfigurationError(f"the target has a code of {len(code)} values, the image {codes.shape[1]}")
        if self.is_direction:
            reach: Tensor = codes @ (self.code / self.code.norm())
            return reach
        values = kernel_values(kernel, self.code, codes)
        return values if self.away is None else values - kernel_values(kernel, self.away, codes)


ITSELF = ResolvedTarget()
"""The image itself as its own target."""


def kernel_values(kernel: Kernel, code: Tensor, codes: Tensor) -> Float[Tensor, " masks"]:
    """Return the values of the kernel; refuse a kernel that does not give one number for each code."""
    values = kernel(code, codes)
    if not isinstance(values, Tensor) or values.shape != codes.shape[:1]:
        shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ConfigurationError(f"the similarity gives {shape} for {len(codes)} codes, not a number each")
    return values.double()


def expect_target(target: object) -> None:
    """Refuse what cannot be a target, as far as that is known without an encoder; None is the image itself."""
    if isinstance(target, tuple):
        _expect_images("a target", target)
    elif isinstance(target, Image):
        _expect_images("a target", (target,))
    elif isinstance(target, Tensor):
        _expect_code("a target", target)
    elif not (target is None or isinstance(target, Text | Direction | Contrast)):
        raise ConfigurationError(f"a target is {KINDS}, not {shown(target)}")


def resolve(encoder: Encoder, target: Target | None, similarity: Kernel | None = None) -> ResolvedTarget:
    """Return the target with its codes; its images are encoded, which counts as encoder calls."""
    expect_target(target)
    if target is None:
        return ITSELF
    if isinstance(target, Direction):
        return ResolvedTarget(_code(encoder, target.code), is_direction=True)
    if not isinstance(target, Contrast):
        return ResolvedTarget(_code(encoder, target))
    toward, away = _code(encoder, target.toward), _code(encoder, target.away)
    if toward.shape != away.shape:
        raise ConfigurationError(f"a contrast is between codes of {len(toward)} and of {len(away)} values")
    same_angle = isinstance(similarity, Cosine) and _equal(toward / toward.norm(), away / away.norm())
    if same_angle or _equal(toward, away):
        raise _equal_targets()
    return ResolvedTarget(toward, away)


def as_codes(encoder: Encoder, target: Target | None) -> Target | None:
    """Return the target with its images and texts as codes, so that they need not be encoded again."""
    if isinstance(target, Contrast):
        return Contrast(toward=_code(encoder, target.toward), away=_code(encoder, target.away))
    return target if target is None or isinstance(target, Direction) else _code(encoder, target)


def direction_between(encoder: Encoder, images: Sequence[Image], others: Sequence[Image]) -> Direction:
    """Return the direction from other images to these: the mean code of these minus that of the others."""
    expect_encoder(encoder)
    for group in (images, others):
        _expect_images("a direction", tuple(group))
    first, second = (_mean_code(encoder, tuple(group)) for group in (images, others))
    if first.shape != second.shape:
        raise ConfigurationError(f"the images have codes of {len(first)} and of {len(second)} values")
    if _equal(first, second):
        raise ConfigurationError("both sets of images have the same mean code, so there is no direction between them")
    return Direction(code=(first - second).cpu())


def _code(encoder: Encoder, target: CodeTarget) -> Float[Tensor, " dim"]:
    """Return the code of a target on the encoder's device, in float64."""
    if isinstance(target, Tensor):
        code = target.detach().to(encoder.device, torch.float64)
    elif isinstance(target, Text):
        code = _text_code(encoder, target)
    else:
        code = _mean_code(encoder, (target,) if isinstance(target, Image) else target)
    _expect_code("a target", code)
    return code


def _text_code(encoder: Encoder, target: Text) -> Float[Tensor, " dim"]:
    """Return the code of a text; refuse an encoder that has no text tower."""
    if not isinstance(encoder, TextEncoder):
        raise ConfigurationError(f"{encoder.name} has no text tower, so a text cannot be its target; give an image")
    codes = checked_codes(encoder.encode_text([target.text]), encoder.name, rows=1, device=encoder.device)
    return codes[0].detach().double()


def _mean_code(encoder: Encoder, images: tuple[Image, ...]) -> Float[Tensor, " dim"]:
    """Return the mean code of images, which are encoded some at a time, those of one size together."""
    codes: list[Tensor] = []
    for shape in dict.fromkeys(image.pixels.shape for image in images):
        pixels = [image.pixels.detach() for image in images if image.pixels.shape == shape]
        codes += [_encoded(encoder, batch) for batch in torch.split(torch.stack(pixels), IMAGES_PER_BATCH)]
    if len({part.shape[1] for part in codes}) > 1:
        raise ConfigurationError("the target's images have codes of different lengths; give images of one size")
    return torch.cat(codes).mean(0)


def _encoded(encoder: Encoder, pixels: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]:
    """Return one code for each image, in float64, and count the calls."""
    try:
        with torch.no_grad(), metering() as meter, behaviour_of(encoder, pixels.shape[1:]).isolated():
            output = encoder(pixels.to(encoder.device, encoder.dtype))
    except RepeatError:
        raise
    except Exception as error:  # an encoder may raise any error
        why = "out of memory" if lacks_memory(error) else reason(error)
        raise EncoderError(f"{encoder.name}: fails on an image of the target: {why}") from error
    if not meter.calls:
        add_calls(len(pixels))
    return checked_codes(output, encoder.name, rows=len(pixels), device=encoder.device).detach().double()


def _expect_images(owner: str, images: tuple[object, ...]) -> None:
    """Refuse an empty set, anything that is no image, and blank images."""
    if not images:
        raise ConfigurationError(f"{owner} needs at least one image, and this set is empty")
    for image in images:
        if not isinstance(image, Image):
            raise ConfigurationError(f"{owner} is made of images, not {shown(image)}; make them with load_image")
        if not image.pixels.any():
            raise ConfigurationError(f"{owner} cannot be blank: every pixel of {image.photo.name} is the mean colour")


def _expect_code(owner: str, code: object) -> None:
    """Refuse anything but one code of finite numbers that are not all zero."""
    if not isinstance(code, Tensor) or code.ndim != 1 or not len(code) or code.is_complex():
        given = f"{code.dtype} {list(code.shape)}" if isinstance(code, Tensor) else shown(code)
        raise ConfigurationError(f"{owner} has one code, a tensor [dim], not {given}")
    if not code.isfinite().all():
        raise ConfigurationError(f"{owner} has a code with NaN or infinite values")
    if not code.any():
        raise ConfigurationError(f"{owner} has a code of zeros, which is similar to nothing")


def _equal(code: Tensor, other: Tensor) -> bool:
    """Return whether two codes are equal up to rounding."""
    return bool((code - other).norm() <= SAME_CODE * torch.maximum(code.norm(), other.norm()))


def _equal_targets() -> ConfigurationError:
    """Return the error for a contrast that is zero everywhere."""
    return ConfigurationError("a contrast of equal targets is zero everywhere; give two that differ")
