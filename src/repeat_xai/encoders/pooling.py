"""Pooling: how the features of a network, a map of places or a row of tokens, become one code for each image."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from torch import Tensor, nn

from repeat_xai.errors import EncoderError, choose


def avg(features: Tensor, prefix_tokens: int) -> Tensor:
    """Return the mean over places, or over the tokens that stand for a place."""
    return features.mean((2, 3)) if features.ndim == 4 else features[:, prefix_tokens:].mean(1)


def max(features: Tensor, prefix_tokens: int) -> Tensor:
    """Return the maximum over places, or over the tokens that stand for a place."""
    return features.amax((2, 3)) if features.ndim == 4 else features[:, prefix_tokens:].amax(1)


def cls(features: Tensor, prefix_tokens: int) -> Tensor:
    """Return the class token, which is the first."""
    if features.ndim != 3 or not prefix_tokens:
        raise EncoderError("pool 'cls' needs a class token, which this encoder does not have; choose avg or max")
    return features[:, 0]


def flatten(features: Tensor, prefix_tokens: int) -> Tensor:
    """Return every value of the features, in order."""
    return features.flatten(1)


def none(features: Tensor, prefix_tokens: int) -> Tensor:
    """Return the features as they are: the network's output is the code."""
    return features


POOLS: dict[str, Callable[[Tensor, int], Tensor]] = {f.__name__: f for f in (avg, max, cls, flatten, none)}
"""Every pooling by its name. `prefix_tokens` is the number of tokens before those that stand for a place."""


def pool_features(features: object, pool: str, *, prefix_tokens: int) -> Tensor:
    """Return one code for each image; raise an EncoderError where the pooling does not suit the features."""
    if not isinstance(features, Tensor):
        raise EncoderError(f"the network gives {type(features).__name__} and no tensor that could be pooled")
    if pool in ("avg", "max") and features.ndim not in (3, 4):
        raise EncoderError(f"pool '{pool}' needs places or tokens, but the network gives {list(features.shape)}")
    return POOLS[pool](features, prefix_tokens)


@final
class PooledNetwork(nn.Module):
    """A network followed by a pooling: images → features → one code for each image."""

    def __init__(self, body: nn.Module, pool: str, *, prefix_tokens: int = 0) -> None:
        super().__init__()
        choose("pool", pool, POOLS)
        self.body = body
        self.pool = pool
        self.prefix_tokens = prefix_tokens

    def forward(self, images: Tensor) -> Tensor:
        return pool_features(self.body(images), self.pool, prefix_tokens=self.prefix_tokens)
