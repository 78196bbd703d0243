"""Half precision, where it does not decide the votes.

Rounding moves each similarity by some δ. Votes come from how similarities differ between masks, so what counts is δ
against their spread: a trained encoder's similarities spread a hundred times wider than half precision's rounding, an
untrained one's do not. δ is measured once, on masked copies of a made-up image, in both precisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.kernels import Kernel
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.runtimes import HALVES, Batch, eager, remembered
from repeat_xai.errors import ConfigurationError, lacks_memory
from repeat_xai.types import Encoder

if TYPE_CHECKING:
    from jaxtyping import Float

LIMIT = 0.1
"""Rounding above this share of the similarities' spread decides votes."""
COPIES, AT_ONCE = 32, 11


class Rounding(NamedTuple):
    """A precision, and how far it moves similarities."""

    dtype: torch.dtype
    error: float = 0.0
    """δ, as a standard deviation; 0 in the encoder's own precision."""


def rounding(encoder: Encoder, basis: Basis, similarity: Kernel, shape: torch.Size) -> Rounding:
    """The precision asked for; by default the first half that does no harm on a GPU, or else the encoder's own."""
    own = Rounding(encoder.dtype)
    if not isinstance(encoder, TorchEncoder):
        return own
    asked = encoder.precision
    if asked == "auto" and (encoder.device.type != "cuda" or encoder.dtype != torch.float32):
        return own
    if asked != "auto" and getattr(torch, asked) not in HALVES:
        return Rounding(getattr(torch, asked))
    question = f"rounding {basis.grid} {similarity} {shape}"
    return remembered(encoder, question, lambda: _measured(encoder, basis, similarity, shape))


def _measured(encoder: TorchEncoder, basis: Basis, similarity: Kernel, shape: torch.Size) -> Rounding:
    asked = encoder.precision
    wanted = HALVES if asked == "auto" else (getattr(torch, asked),)
    try:
        exact = _similarities(encoder, encoder.dtype, basis, similarity, shape)
    except Exception:  # whatever is wrong with the encoder is said when it is asked in earnest
        return Rounding(encoder.dtype if asked == "auto" else wanted[0])
    for dtype in wanted:
        try:
            error = float((_similarities(encoder, dtype, basis, similarity, shape) - exact).std())
        except Exception as failure:  # a module may meet a precision it was not made for in any way
            if asked != "auto" and not lacks_memory(failure):
                raise ConfigurationError(f"{encoder.name} does not run in {asked}; use float32") from failure
            continue
        if asked != "auto" or error <= LIMIT * float(exact.std()):
            return Rounding(dtype, error)
    return Rounding(encoder.dtype)


def _similarities(
    encoder: TorchEncoder, dtype: torch.dtype, basis: Basis, similarity: Kernel, shape: torch.Size
) -> Float[Tensor, " masks"]:
    coarse = torch.randn(1, shape[0], 16, 16, generator=torch.Generator().manual_seed(0))
    image = F.interpolate(coarse, shape[1:], mode="bilinear").to(encoder.device, dtype)
    draws = basis.draw(seed=0, start=0, stop=1 + COPIES)
    codes = []
    for start in range(0, 1 + COPIES, AT_ONCE):
        grids, shifts = (part[start : start + AT_ONCE] for part in draws)
        number = torch.arange(start, start + len(grids), device=encoder.device)
        batch = Batch(image, torch.zeros_like(number), number == 0, Draws(grids.to(dtype), shifts))
        codes.append(eager(encoder, dtype).run(batch, basis))
    whole, *_ = every = torch.cat(codes).double()
    return similarity(whole, every[1:])
