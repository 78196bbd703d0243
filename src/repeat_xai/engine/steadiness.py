"""Whether an encoder gives an image the same code at every call, wherever in a batch and beside whatever others.

Every method takes that for granted: it lays a difference of codes to what it has done to the image.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from repeat_xai.encoders.calls import uncounted
from repeat_xai.encoders.codes import checked_codes, features_of
from repeat_xai.encoders.torch_state import generators_restored, settings_restored
from repeat_xai.engine.runtimes import remembered
from repeat_xai.errors import EncoderError
from repeat_xai.types import Encoder

NOTICED = 1e-2
"""A share of the difference between the codes of two images below which noise changes no map to speak of."""
ROUNDING = 100
"""Rounding errors of the largest value, below which a difference is no noise but the order of sums."""


class Conduct(NamedTuple):
    """How an encoder behaves, on its device."""

    device: torch.device

    steady: bool = True
    """Whether the same image has the same code, up to rounding."""
    draws: bool = False
    """Whether it touches torch's or numpy's global generators of random numbers."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Run the encoder in the block without a trace in torch's settings nor, if it draws, in the generators."""
        with settings_restored(), generators_restored(self.device) if self.draws else nullcontext():
            yield


def conduct_of(encoder: Encoder, shape: torch.Size) -> Conduct:
    """Return how the encoder behaves on images of this shape, and warn of one whose codes are not steady.

    It is found out once, by four made-up images, which count as no encoder calls.
    """
    if getattr(encoder, "stochastic", False):  # it says so itself
        return Conduct(encoder.device)
    found = remembered(encoder, f"conduct {list(shape)}", lambda: _observed(encoder, shape))
    if not found.steady:
        warnings.warn(
            f"{encoder.name}: gives one image different codes from call to call or from batch to batch; maps of every "
            "method hold that noise and cannot be made again: switch off its dropout, noise or batch statistics",
            stacklevel=2,
        )
    return found


def _observed(encoder: Encoder, shape: torch.Size) -> Conduct:
    """Encode an image twice: first of two, and later last of two, beside another."""
    images = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0)).to(encoder.device, encoder.dtype)
    with uncounted(), generators_restored(encoder.device):
        before = _generators(encoder.device)
        found = [_codes(encoder, images[list(pair)]) for pair in ((0, 1), (2, 0))]
        draws = _generators(encoder.device) != before
    first, second = found
    if first is None or second is None:
        return Conduct(encoder.device, draws=draws)
    if first.shape != second.shape:
        raise EncoderError(f"{encoder.name}: returns codes of {first.shape[1]} values, then of {second.shape[1]}")
    eps = max(torch.finfo(first.dtype).eps, torch.finfo(encoder.dtype).eps)
    first, second = first.double(), second.double()
    apart = float((first[0] - second[1]).abs().amax())
    noise = max(NOTICED * float((first[0] - first[1]).abs().amax()), ROUNDING * eps * float(first.abs().amax()))
    return Conduct(encoder.device, steady=not apart > noise, draws=draws)


def _codes(encoder: Encoder, images: Tensor) -> Tensor | None:
    """The codes of the images; None where there are none, which is said when the encoder is asked in earnest."""
    try:
        with torch.no_grad():
            found = features_of(lambda: encoder(images), encoder.name, device=encoder.device)
        return checked_codes(found, encoder.name, rows=len(images), device=encoder.device).clone()
    except Exception:  # lack of memory among them
        return None


def _generators(device: torch.device) -> bytes:
    """The states of torch's and numpy's global generators."""
    torches = [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]
    return pickle.dumps(([state.numpy() for state in torches], np.random.get_state()))
