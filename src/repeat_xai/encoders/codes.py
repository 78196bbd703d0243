"""What an encoder may return: one code an image, in numbers that everything else can compute with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.encoders.torch_state import undisturbed
from repeat_xai.errors import EncoderError, lacks_memory, reason

if TYPE_CHECKING:
    from jaxtyping import Float


def features_of(run: Callable[[], object], name: str, *, device: torch.device) -> Tensor:
    """Return the plain tensor that `run` makes of images; refuse anything else, or a failure, in one line.

    Lack of memory is left as it is: with fewer images there may be enough.
    """
    try:
        with undisturbed():
            features = run()
    except EncoderError:
        raise
    except Exception as error:  # any encoder may fail in any way
        if lacks_memory(error):
            raise
        raise EncoderError(f"{name} fails: {reason(error)}") from error
    return _plain(features, name, device=device)


def checked(codes: object, name: str, *, rows: int, device: torch.device) -> Float[Tensor, "rows dim"]:
    """Return the codes if they are one for each of so many images; refuse them in one line if not."""
    codes = _plain(codes, name, device=device)
    if codes.ndim != 2 or len(codes) != rows or not codes.shape[1]:
        raise EncoderError(
            f"{name}: returns {list(codes.shape)} for {rows} images, not one code per image [{rows}, dim]; "
            "choose a pool such as avg, cls or flatten"
        )
    if not codes.is_floating_point():
        raise EncoderError(f"{name}: returns codes of {codes.dtype}, not floats")
    return codes


def _plain(codes: object, name: str, *, device: torch.device) -> Tensor:
    """Return what an encoder gave if it is a tensor with a number in memory for each of its places."""
    if not isinstance(codes, Tensor):
        raise EncoderError(f"{name}: returns {type(codes).__name__}; wrap it so that it returns a tensor")
    if codes.is_nested or codes.layout != torch.strided:  # a nested tensor has no shape to speak of
        kind = "a nested tensor" if codes.is_nested else f"a tensor of layout {codes.layout}"
        raise EncoderError(f"{name}: returns {kind}; wrap it so that it returns a plain one")
    if codes.device.type != device.type:
        raise EncoderError(f"{name}: returns codes on {codes.device}, but its weights are on {device}")
    return codes
