"""RELAX (Wickstrøm et al. 2023): mask the image at random and see how far its code moves.

    R = Σ s·M / Σ M            U = Σ (s − R)²·M / Σ M            s = s(h, h̄), h̄ the code of the image under M

The paper prints both with 1/N in place of 1/Σ M; the authors' code divides R by Σ M, which is what gives the paper's
figures, and U by nothing. Each reading has its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, final

import torch
from torch import Tensor

from repeat_xai.engine import basis_for, similarities
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.masks import Grid
from repeat_xai.provenance import metering, record
from repeat_xai.similarity import Cosine
from repeat_xai.types import Encoder, Explanation, Image, Kernel

if TYPE_CHECKING:
    from repeat_xai.types import Map

Normalise = Literal["mask_sum", "count"]
Spread = Literal["mask_sum", "count", "sum"]

SAME = 1e-15
"""Similarities no further apart than this, relatively, differ by rounding alone."""


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over masks, a map each, of similarities told from that of the first mask, s₀: no digit of a spread is lost
    when all similarities are nearly alike, as an untrained encoder's are."""

    origin: Tensor
    """s₀."""
    masks: Map
    """Σ M."""
    first: Map
    """Σ (s − s₀)·M."""
    second: Map
    """Σ (s − s₀)²·M."""


@final
@dataclass(frozen=True, kw_only=True)
class Relax:
    """Importance as similarity kept, averaged over random masks."""

    masks: int = 1000
    grid: Grid = Grid()
    similarity: Kernel = Cosine()
    normalise: Normalise = "mask_sum"
    """What divides Σ s·M: the sum of masks, or their count N as printed."""
    spread: Spread = "mask_sum"
    """What divides Σ (s − R)²·M: the sum of masks, their count N as printed, or nothing as in the authors' code."""
    chunk: int | None = field(default=None, compare=False)
    """Masked copies through the encoder at once, if not as suits the device: changes memory and speed, not the map."""

    def __post_init__(self) -> None:
        for name, value in (("masks", self.masks), ("chunk", self.chunk)):
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {value}")
        if self.normalise not in ("mask_sum", "count"):
            raise ConfigurationError(f"normalise must be mask_sum or count, not '{self.normalise}'")
        if self.spread not in ("mask_sum", "count", "sum"):
            raise ConfigurationError(f"spread must be mask_sum, count or sum, not '{self.spread}'")

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """The importance map, in float64."""
        return self._importance(self._moments(encoder, image, seed=seed))

    def explain(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        """Importance with RELAX's own uncertainty: how much the similarities behind each pixel vary."""
        with metering() as meter:
            moments = self._moments(encoder, image, seed=seed)
            importance = self._importance(moments)
            uncertainty = self._uncertainty(moments, importance)
        return Explanation(
            importance=importance.float().cpu(),
            uncertainty=uncertainty.float().cpu(),
            vote_share=None,
            photo=image.photo,
            provenance=record(self, encoder, image, seed=seed, meter=meter),
        )

    def _importance(self, m: Moments) -> Map:
        if self.normalise == "count":
            return (m.first + m.origin * m.masks) / self.masks
        return torch.where(m.masks > 0, m.origin + m.first / m.masks, 0.0)

    def _uncertainty(self, m: Moments, importance: Map) -> Map:
        centre = importance - m.origin
        squares = (m.second - 2 * centre * m.first + centre.square() * m.masks).clamp_min(0)
        if self.spread == "sum":
            return squares
        if self.spread == "count":
            return squares / self.masks
        return torch.where(m.masks > 0, squares / m.masks, 0.0)

    def _moments(self, encoder: Encoder, image: Image, *, seed: int) -> Moments:
        basis = basis_for(encoder, image, self.grid)
        chunks = similarities(
            encoder,
            image,
            basis=basis,
            grid=self.grid,
            masks=self.masks,
            similarity=self.similarity,
            chunk=self.chunk,
            seed=seed,
        )
        origin, sums, furthest = None, torch.zeros(()), torch.zeros(())
        for draws, similarity in chunks:
            origin = similarity[0] if origin is None else origin
            away = similarity - origin
            furthest = torch.maximum(furthest.to(away.device), away.abs().amax())
            sums = sums.to(away.device) + basis.sums(draws, torch.stack((torch.ones_like(away), away, away**2), 1))
        assert origin is not None
        if self.masks > 1 and furthest <= SAME * origin.abs():
            raise EncoderError(
                f"{image.photo.name}: every masked copy has the same code; {encoder.name} ignores its input, "
                "or the image is blank"
            )
        return Moments(origin, *basis.maps(sums))
