"""Importance methods, one a file: how much each pixel matters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@runtime_checkable
class Importance(Protocol):
    """A base method: how much each pixel matters, from one stochastic run."""

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map: ...


@runtime_checkable
class Explainer(Protocol):
    """How much each pixel matters, and how sure that is."""

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation: ...


def deterministic(method: Importance) -> bool:
    """Whether the method says of itself that it finds the same whatever the seed."""
    return getattr(method, "stochastic", True) is False


def name_of(method: Importance) -> str:
    """What it is called."""
    return str(getattr(method, "name", None) or getattr(method, "__name__", type(method).__name__))


def importance_of(method: Importance, encoder: Encoder, image: Image, *, seed: int) -> Map:
    """What any method finds, in float64 on the host, or a clear refusal where that is no map."""
    found, name = method(encoder, image, seed=seed), name_of(method)
    if not isinstance(found, Tensor) or found.shape != image.pixels.shape[1:]:
        shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(f"{name} gave {shape}, not a map of {list(image.pixels.shape[1:])}")
    if not found.isfinite().all():
        raise EncoderError(f"{image.photo.name}: {name} gave a map with NaN or infinite values")
    return found.detach().double().cpu()
