"""RELAX (Wickstrøm et al. 2023) masks the image at random and measures how similar its code stays.

    R = Σ s·M / Σ M            U = Σ (s − R)²·M / Σ M            s = s(h, h̄), h̄ the code of the image under M
    effect = Σ s·M / Σ M − Σ s / N

The paper prints both with 1/N in place of 1/Σ M. The authors' code divides R by Σ M, which reproduces the paper's
figures, and does not divide U at all. `normalise` and `normalise_uncertainty` choose among these readings by name.

h is the code of the image itself, or of another target (`engine/targets.py`). Toward another target a pixel may lower
the similarity, so an explanation then has the effect too: how much higher s is when the pixel is kept than overall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, final, get_args

import torch
from torch import Tensor

from repeat_xai.engine.batches import Plan
from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.masks import Basis, Grid
from repeat_xai.engine.scheduler import Estimate, Progress, run_estimates
from repeat_xai.engine.targets import Target, expect_target
from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.methods.base import explain_image, explain_images
from repeat_xai.methods.provenance import MethodMaps, explanations
from repeat_xai.methods.votes import Zero
from repeat_xai.seeds import fold
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, only_result

if TYPE_CHECKING:
    from repeat_xai.types import Map

Normalise = Literal["mask_sum", "count"]
NormaliseUncertainty = Literal["mask_sum", "count", "sum"]


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over masks of s − s₀, the similarities' differences from the first mask's similarity, as maps.

    Differences keep all digits where the similarities are nearly equal, as those of an untrained encoder are.
    """

    origin: Tensor
    """s₀."""
    masks: Map
    """Σ M."""
    first: Map
    """Σ (s − s₀)·M."""
    second: Map
    """Σ (s − s₀)²·M."""
    total: Tensor
    """Σ (s − s₀)."""


@final
@dataclass(frozen=True, kw_only=True)
class Relax:
    """RELAX: the importance of a pixel is the mean similarity of the masked copies that keep it.

    Its uncertainty is the variance of these similarities.
    """

    title: ClassVar[str] = "RELAX"
    stochastic: ClassVar[bool] = True
    gradients: ClassVar[bool] = False
    citation: ClassVar[str] = "Wickstrøm et al. 2023"

    masks: int = 1000
    """Number of masks N."""
    grid: Grid = Grid()
    """How masks are drawn."""
    similarity: Kernel = Cosine()
    """The kernel s that compares codes."""
    target: Target | None = None
    """What the codes of masked copies are compared with; None is the image itself."""
    normalise: Normalise = "mask_sum"
    """The divisor of Σ s·M: the sum of the masks, or their count N as printed."""
    normalise_uncertainty: NormaliseUncertainty = "mask_sum"
    """The divisor of Σ (s − R)²·M: the sum of the masks, their count N as printed, or none (`sum`) as in the authors'
    code."""
    chunk: int | None = field(default=None, compare=False)
    """Masked copies per batch; None chooses by the device. It changes memory and speed, but not the maps."""

    def __post_init__(self) -> None:
        at_least("masks", self.masks, 1)
        at_least("chunk", 1 if self.chunk is None else self.chunk, 1)
        if not isinstance(self.grid, Grid):
            raise ConfigurationError(f"grid must be a Grid, such as Grid(cells=7), not {self.grid!r}")
        if isinstance(self.similarity, type) or not callable(self.similarity):
            raise ConfigurationError(f"similarity must be a kernel, such as Cosine(), not {self.similarity!r}")
        expect_target(self.target)
        choose("normalise", self.normalise, get_args(Normalise))
        choose("normalise_uncertainty", self.normalise_uncertainty, get_args(NormaliseUncertainty))

    @property
    def calls(self) -> int:
        """Encoder calls for an image: its masked copies, and the image itself."""
        return self.masks + 1

    @property
    def plan(self) -> Plan:
        """How the engine is to run the masked copies of an image."""
        return Plan(self.grid, self.similarity, self.chunk, self.calls, (self.target,))

    @property
    def zero(self) -> Zero:
        """The importance that has no weight in a vote."""
        return "zero" if self.target is None else "minimum"

    __call__ = explain_image
    stream = explain_images

    def answers(
        self, encoder: Encoder, tasks: Iterable[Task], *, seed: int, progress: Progress | None = None
    ) -> Iterator[Answer[Explanation]]:
        """Yield an answer for each task, in order; an image that cannot be explained is answered with its error."""
        maps = run_estimates(encoder, tasks, partial(self.estimate, seed=seed), self.plan, progress)
        return explanations(maps, self, encoder, seed=seed)

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the importance map R of one run, in float64."""

        def estimate(basis: Basis, image: Image) -> Estimate[Map]:
            moments = yield from self.moments(basis, image, seed=seed)
            return (yield self.mean_similarity(moments))

        return only_result(run_estimates(encoder, (Task(image),), estimate, self.plan))

    def estimate(self, basis: Basis, image: Image, *, seed: int) -> Estimate[MethodMaps]:
        """Ask for the similarities under all masks, and return importance and uncertainty."""
        moments = yield from self.moments(basis, image, seed=seed)
        importance = self.mean_similarity(moments)
        maps = [importance, self.similarity_variance(moments, importance)]
        if self.target is not None:
            maps.append(self.effect(moments))
        importance, uncertainty, *effect = yield torch.stack(maps)
        return MethodMaps(importance, uncertainty, effect=effect[0] if effect else None)

    def mean_similarity(self, m: Moments) -> Map:
        """Return R."""
        if self.normalise == "count":
            return (m.first + m.origin * m.masks) / self.masks
        return torch.where(m.masks > 0, m.origin + m.first / m.masks, 0.0)

    def effect(self, m: Moments) -> Map:
        """Return Σ s·M / Σ M − Σ s / N, whatever `normalise` says: the difference of two mean similarities."""
        return torch.where(m.masks > 0, m.first / m.masks - m.total / self.masks, 0.0)

    def similarity_variance(self, m: Moments, importance: Map) -> Map:
        """Return U, from Σ (s − R)²·M = Σ (s − s₀)²·M − 2 (R − s₀) Σ (s − s₀)·M + (R − s₀)² Σ M."""
        centre = importance - m.origin
        squares = (m.second - 2 * centre * m.first + centre.square() * m.masks).clamp_min(0)
        if self.normalise_uncertainty == "sum":
            return squares
        if self.normalise_uncertainty == "count":
            return squares / self.masks
        return torch.where(m.masks > 0, squares / m.masks, 0.0)

    def moments(self, basis: Basis, image: Image, *, seed: int) -> Estimate[Moments]:
        """Ask for the similarities under the masks that the seed and the image determine, and return their sums."""
        origin, sums = None, torch.zeros((), device=basis.rows.device)
        total = torch.zeros((), dtype=torch.float64, device=basis.rows.device)
        for draws in basis.row(self.masks, seed=fold(seed, image.photo.digest)):
            similarity = yield draws
            origin = similarity[0] if origin is None else origin
            difference = similarity - origin
            total = total + difference.sum()
            sums = sums + basis.sums(draws, torch.stack((torch.ones_like(difference), difference, difference**2), 1))
        assert origin is not None
        masks, first, second = basis.maps(sums)
        return Moments(origin, masks, first, second, total)
