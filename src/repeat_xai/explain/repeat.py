"""REPEAT (Wickstrøm et al. 2025): every pixel is a Bernoulli variable, important or not.

    I(k) = 1 where R(k) ≥ τ(k), else 0            W(k) = R(k) / max R(k)
    p = (1/K) Σ_k I(k)·W(k)                       U = p(1 − p)

R(k) is the k-th run of a stochastic base method and τ(k) its own threshold. Binary votes leave W out, which makes p
the mean of true Bernoulli samples. A constant map singles out no pixel and so casts no vote; importance at or below
zero weighs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.calls import metering
from repeat_xai.errors import ConfigurationError, EncoderError, at_least, choose
from repeat_xai.importance.relax import Relax
from repeat_xai.provenance import record
from repeat_xai.seeds import fold
from repeat_xai.thresholds import THRESHOLDS
from repeat_xai.types import Encoder, Explanation, Image, Importance, expect

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from repeat_xai.types import Map

Estimator = Literal["exact"]
Votes = Literal["weighted", "binary"]


@final
@dataclass(frozen=True, kw_only=True)
class Repeat:
    """Importance as the share of repeats that call a pixel important, uncertainty as their disagreement."""

    base: Importance = Relax()
    estimator: Estimator = "exact"
    repeats: int = 10
    threshold: str = "mean"
    votes: Votes = "weighted"

    def __post_init__(self) -> None:
        at_least("repeats", self.repeats, 1)
        if isinstance(self.base, type) or not callable(self.base):
            raise ConfigurationError(f"base must be an importance method, such as Relax(), not {self.base!r}")
        choose("estimator", self.estimator, get_args(Estimator))
        choose("threshold", self.threshold, THRESHOLDS)
        choose("votes", self.votes, get_args(Votes))

    @property
    def calls(self) -> int | None:
        """Encoder calls per image, where the base says how many it makes."""
        base = getattr(self.base, "calls", None)
        return None if base is None else self.repeats * int(base)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        expect(encoder, image)
        with metering() as meter:
            p = share = torch.zeros(image.pixels.shape[1:], dtype=torch.float64)
            for repeat in range(self.repeats):
                importance = self._base_map(encoder, image, seed=fold(seed, "repeat", repeat))
                chosen = indicator(importance[None], self.threshold)[0]
                weight = weights(importance[None])[0] if self.votes == "weighted" else 1.0
                p = p + chosen * weight / self.repeats
                share = share + chosen.double() / self.repeats
        return Explanation(
            importance=p.float(),
            uncertainty=(p * (1 - p)).float(),
            vote_share=share.float(),
            photo=image.photo,
            provenance=record(self, encoder, image, seed=seed, meter=meter),
        )

    def _base_map(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        found = self.base(encoder, image, seed=seed)
        if not isinstance(found, Tensor) or found.shape != image.pixels.shape[1:]:
            shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise ConfigurationError(f"the base gave {shape}, not a map of {list(image.pixels.shape[1:])}")
        if not found.isfinite().all():
            raise EncoderError(f"{image.photo.name}: the base gave a map with NaN or infinite values")
        return found.detach().double().cpu()


def indicator(maps: Float[Tensor, "maps height width"], threshold: str) -> Bool[Tensor, "maps height width"]:
    """I: which pixels of each map reach its cut."""
    cuts = THRESHOLDS[threshold](maps)
    low, high = maps.flatten(1).aminmax(dim=1)
    return (maps >= cuts[:, None, None]) & (high > low)[:, None, None]


def weights(maps: Float[Tensor, "maps height width"]) -> Float[Tensor, "maps height width"]:
    """W: importance as a share of the map's largest, and zero where there is none above zero."""
    top = maps.amax((1, 2), keepdim=True)
    return torch.where(top > 0, maps / top, 0.0).clamp_min(0)
