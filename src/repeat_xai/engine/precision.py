"""Half precision is used where its rounding does not change the votes.

Rounding moves each similarity by some δ. Votes depend on how similarities differ between masks, so δ is compared with
their standard deviation: for a trained encoder that is about a hundred times larger than the rounding of half
precision, for an untrained one it is not. δ is measured once, on masked copies of a made-up image, in both precisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.kernels import Kernel
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.engine.runtimes import HALVES, MaskedBatch, eager, remembered
from repeat_xai.engine.targets import ITSELF, ResolvedTarget
from repeat_xai.errors import ConfigurationError, lacks_memory
from repeat_xai.types import Encoder

if TYPE_CHECKING:
    from jaxtyping import Float

MAX_ROUNDING = 0.1
"""Largest share of the similarities' standard deviation that rounding may have."""
COPIES, COPIES_PER_BATCH = 32, 11


class Rounding(NamedTuple):
    """A precision, and how far it moves similarities."""

    dtype: torch.dtype
    errors: tuple[float, ...] = ()
    """Standard deviation of δ toward each target; none in the encoder's own precision."""


def rounding(
    encoder: Encoder, basis: Basis, similarity: Kernel, targets: Sequence[ResolvedTarget], shape: torch.Size
) -> Rounding:
    """Return the precision to use: the requested one or, on a GPU, the first half precision that does no harm."""
    own = Rounding(encoder.dtype)
    if not isinstance(encoder, TorchEncoder):
        return own
    requested = encoder.precision
    if requested == "auto" and (encoder.device.type != "cuda" or encoder.dtype != torch.float32):
        return own
    if requested != "auto" and getattr(torch, requested) not in HALVES:
        return Rounding(getattr(torch, requested))
    others = [target.digest for target in targets if target is not ITSELF]
    question = f"rounding {basis.grid} {similarity} {others} {shape}"
    return remembered(encoder, question, lambda: _measured(encoder, basis, similarity, targets, shape))


def _measured(
    encoder: TorchEncoder, basis: Basis, similarity: Kernel, targets: Sequence[ResolvedTarget], shape: torch.Size
) -> Rounding:
    """Measure δ for each half precision that may be used, and return the first that is fine enough."""
    requested = encoder.precision
    candidates = HALVES if requested == "auto" else (getattr(torch, requested),)
    try:
        exact = _similarities(encoder, encoder.dtype, basis, similarity, targets, shape)
    except Exception:  # the encoder's next, real call reports the error
        return Rounding(encoder.dtype if requested == "auto" else candidates[0])
    for dtype in candidates:
        try:
            moved = _similarities(encoder, dtype, basis, similarity, targets, shape) - exact
        except Exception as failure:  # a module may fail in any way in a precision it was not made for
            if requested != "auto" and not lacks_memory(failure):
                raise ConfigurationError(f"{encoder.name} does not run in {requested}; use float32") from failure
            continue
        errors = [float(column.std()) for column in moved]
        limits = [MAX_ROUNDING * float(column.std()) for column in exact]
        if requested != "auto" or all(error <= limit for error, limit in zip(errors, limits, strict=True)):
            return Rounding(dtype, tuple(errors))
    return Rounding(encoder.dtype)


def _similarities(
    encoder: TorchEncoder,
    dtype: torch.dtype,
    basis: Basis,
    similarity: Kernel,
    targets: Sequence[ResolvedTarget],
    shape: torch.Size,
) -> Float[Tensor, "targets masks"]:
    """Return the similarities of masked copies of a made-up image toward each target, encoded in this precision."""
    coarse = torch.randn(1, shape[0], 16, 16, generator=torch.Generator().manual_seed(0))
    image = F.interpolate(coarse, shape[1:], mode="bilinear").to(encoder.device, dtype)
    draws = basis.draw(seed=0, start=0, stop=1 + COPIES)
    codes = []
    for start in range(0, 1 + COPIES, COPIES_PER_BATCH):
        grids, shifts = (part[start : start + COPIES_PER_BATCH] for part in draws)
        number = torch.arange(start, start + len(grids), device=encoder.device)
        batch = MaskedBatch(image, torch.zeros_like(number), number == 0, Draws(grids.to(dtype), shifts))
        codes.append(eager(encoder, dtype).run(batch, basis))
    whole, *_ = every = torch.cat(codes).double()
    return torch.stack([target.similarities(similarity, whole, every[1:]) for target in targets])
