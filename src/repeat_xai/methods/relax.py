"""RELAX (Wickstrøm et al. 2023): mask the image at random and see how far its code moves.

    R = Σ s·M / Σ M            U = Σ (s − R)²·M / Σ M            s = s(h, h̄), h̄ the code of the image under M

The paper prints both with 1/N in place of 1/Σ M; the authors' code divides R by Σ M, which is what gives the paper's
figures, and U by nothing. Each reading has its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.engine.batches import Plan
from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.masks import Basis, Grid
from repeat_xai.engine.scheduler import Answer, Estimate, only, stream
from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.methods.provenance import Maps, explained
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Normalise = Literal["mask_sum", "count"]
Spread = Literal["mask_sum", "count", "sum"]


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

    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Wickstrøm et al. 2023"

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
        at_least("masks", self.masks, 1)
        at_least("chunk", 1 if self.chunk is None else self.chunk, 1)
        if not isinstance(self.grid, Grid):
            raise ConfigurationError(f"grid must be a Grid, such as Grid(cells=7), not {self.grid!r}")
        if isinstance(self.similarity, type) or not callable(self.similarity):
            raise ConfigurationError(f"similarity must be a kernel, such as Cosine(), not {self.similarity!r}")
        choose("normalise", self.normalise, get_args(Normalise))
        choose("spread", self.spread, get_args(Spread))

    @property
    def calls(self) -> int:
        """Encoder calls per image: its masked copies, and itself."""
        return self.masks + 1

    @property
    def plan(self) -> Plan:
        return Plan(self.grid, self.similarity, self.chunk, self.calls)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """The importance map, in float64."""

        def estimate(basis: Basis, image: Image) -> Estimate[Map]:
            moments = yield from self.moments(basis, image, seed=seed)
            return (yield self.importance(moments))

        return only(stream(encoder, (image,), estimate, self.plan))

    def explain(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        """Importance with RELAX's own uncertainty: how much the similarities behind each pixel vary."""
        return only(self.answers(encoder, (image,), seed=seed))

    def answers(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Answer[Explanation]]:
        """`explain` for many images, each with what it cost, or why it failed."""

        def estimate(basis: Basis, image: Image) -> Estimate[Maps]:
            moments = yield from self.moments(basis, image, seed=seed)
            importance = self.importance(moments)
            importance, uncertainty = yield torch.stack((importance, self._uncertainty(moments, importance)))
            return Maps(importance, uncertainty)

        return explained(stream(encoder, images, estimate, self.plan), self, encoder, seed=seed)

    def importance(self, m: Moments) -> Map:
        """R."""
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

    def moments(self, basis: Basis, image: Image, *, seed: int) -> Estimate[Moments]:
        """Sums over the masks that the seed and the image name."""
        origin, sums = None, torch.zeros((), device=basis.rows.device)
        for draws in basis.row(self.masks, seed=fold(seed, image.photo.digest)):
            similarity = yield draws
            origin = similarity[0] if origin is None else origin
            away = similarity - origin
            sums = sums + basis.sums(draws, torch.stack((torch.ones_like(away), away, away**2), 1))
        assert origin is not None
        return Moments(origin, *basis.maps(sums))
