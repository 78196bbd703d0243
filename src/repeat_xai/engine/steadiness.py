"""Whether an encoder gives an image the same code at every call, in any batch and beside any other images.

Every method relies on that: it attributes a difference between codes to the change it made to the image.
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
from repeat_xai.encoders.onnx import OnnxEncoder
from repeat_xai.encoders.torch_state import generators_restored, settings_restored
from repeat_xai.engine.runtimes import remembered
from repeat_xai.errors import EncoderError
from repeat_xai.types import Encoder

NOISE_SHARE = 1e-2
"""Noise below this share of the difference between the codes of two images hardly changes a map."""
ROUNDING_ERRORS = 100
"""A difference of fewer rounding errors of the largest value comes from the order of sums, and is no noise."""


class Behaviour(NamedTuple):
    """How an encoder behaves on its device."""

    device: torch.device
    steady: bool = True
    """Whether the same image has the same code, up to rounding."""
    draws: bool = False
    """Whether it touches torch's or numpy's global generators of random numbers."""

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Run the encoder in the block so that torch's settings and, if it draws, the generators stay as they are."""
        with settings_restored(), generators_restored(self.device) if self.draws else nullcontext():
            yield


def behaviour_of(encoder: Encoder, shape: torch.Size) -> Behaviour:
    """Return how the encoder behaves on images of this shape, and warn if its codes are not steady.

    This is tried once for each shape, with four made-up images that do not count as encoder calls.
    """
    if getattr(encoder, "stochastic", False):  # its codes are random on purpose
        return Behaviour(encoder.device)
    behaviour = remembered(encoder, f"behaviour {list(shape)}", lambda: _observed(encoder, shape))
    if not behaviour.steady:
        warnings.warn(
            f"{encoder.name}: gives one image different codes from call to call or from batch to batch; its maps "
            "contain this noise and will differ from run to run: switch off its dropout, noise or batch statistics",
            stacklevel=2,
        )
    return behaviour


def _observed(encoder: Encoder, shape: torch.Size) -> Behaviour:
    """Encode one image twice: first in a batch of two, then last in another batch of two."""
    images = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0)).to(encoder.device, encoder.dtype)
    # ONNX Runtime has its own generators. A network in it may also loop without end, and while it held the lock of
    # torch's and numpy's generators, every other thread would wait for it.
    touches_none = isinstance(encoder, OnnxEncoder)
    with uncounted(), nullcontext() if touches_none else generators_restored(encoder.device):
        before = _generators(encoder.device)
        first, second = (_codes(encoder, images[list(pair)]) for pair in ((0, 1), (2, 0)))
        draws = not touches_none and _generators(encoder.device) != before
    if first is None or second is None:
        return Behaviour(encoder.device, draws=draws)
    if first.shape != second.shape:
        raise EncoderError(f"{encoder.name}: returns codes of {first.shape[1]} values, then of {second.shape[1]}")
    eps = max(torch.finfo(first.dtype).eps, torch.finfo(encoder.dtype).eps)
    first, second = first.double(), second.double()
    difference = float((first[0] - second[1]).abs().amax())
    between_images = float((first[0] - first[1]).abs().amax())
    noise = max(NOISE_SHARE * between_images, ROUNDING_ERRORS * eps * float(first.abs().amax()))
    return Behaviour(encoder.device, steady=not difference > noise, draws=draws)


def _codes(encoder: Encoder, images: Tensor) -> Tensor | None:
    """Return the codes of the images, or None where the encoder fails: its next, real call reports the error."""
    try:
        with torch.no_grad():
            features = features_of(lambda: encoder(images), encoder.name, device=encoder.device)
        return checked_codes(features, encoder.name, rows=len(images), device=encoder.device).clone()
    except Exception:  # also lack of memory
        return None


def _generators(device: torch.device) -> bytes:
    """Return the states of torch's and numpy's global generators, as comparable bytes."""
    torch_states = [torch.get_rng_state(), *([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])]
    return pickle.dumps(([state.numpy() for state in torch_states], np.random.get_state()))
