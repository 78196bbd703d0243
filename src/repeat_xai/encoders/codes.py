"""Checks on what an encoder returns: one code for each image, in numbers that everything else can compute with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.encoders.torch_state import settings_restored
from repeat_xai.errors import EncoderError, lacks_memory, reason

if TYPE_CHECKING:
    from jaxtyping import Float


def features_of(run: Callable[[], object], name: str, *, device: torch.device) -> Tensor:
    """Return the plain tensor that `run` returns; raise an EncoderError if it fails or returns anything else.

    An error that means too little memory is raised as it is: the caller may try again with fewer images.
    """
    try:
        with settings_restored():
            features = run()
    except EncoderError:
        raise
    except Exception as error:  # any encoder may fail in any way
        if lacks_memory(error):
            raise
        raise EncoderError(f"{name} fails: {reason(error)}") from error
    return plain_tensor(features, name, device=device)


def checked_codes(codes: object, name: str, *, rows: int, device: torch.device) -> Float[Tensor, "rows dim"]:
    """Return the codes if they are floating-point numbers with one row for each image; raise an EncoderError if not."""
    codes = plain_tensor(codes, name, device=device)
    if codes.ndim != 2 or len(codes) != rows or not codes.shape[1]:
        raise EncoderError(
            f"{name}: returns {list(codes.shape)} for {rows} images, not one code per image [{rows}, dim]; "
            "choose a pool such as avg, cls or flatten"
        )
    if not codes.is_floating_point():
        raise EncoderError(f"{name}: returns codes of {codes.dtype}, not floats")
    return codes


def plain_tensor(output: object, name: str, *, device: torch.device) -> Tensor:
    """Return an encoder's output if it is a dense tensor on the device; raise an EncoderError if not."""
    if not isinstance(output, Tensor):
        raise EncoderError(f"{name}: returns {type(output).__name__}; wrap it so that it returns a tensor")
    if output.is_nested or output.layout != torch.strided:  # a nested tensor has no shape that could be checked
        kind = "a nested tensor" if output.is_nested else f"a tensor of layout {output.layout}"
        raise EncoderError(f"{name}: returns {kind}; wrap it so that it returns a plain one")
    if output.device.type != device.type:
        raise EncoderError(f"{name}: returns codes on {output.device}, but its weights are on {device}")
    return output
