"""The fast estimator of REPEAT uses one specially constructed set of masks in place of K independent sets of N masks.

REPEAT counts in how many maps, of independent sets of N masks, a pixel reaches the cut. Each set's map is the true mean
map plus the noise of N masks. A set of P ≪ K·N masks, drawn as orthogonal arrays, gives both:

    mean map   μ = E[s·M] / q, from the regression s = β₀ + Σ_c β_c (m_c − q) + ε, with m_c the mean of the mask over
               square c of the image:    E[s·M] = q β₀ + q(1 − q) Σ_c β_c C_c,    C_c q(1 − q) = Cov(m_c, M)
    noise      δ_b = R_b − R, where R_b = Σ w_b s·M / Σ w_b M over N masks drawn from the set with replacement

With another target than the image itself, the effect is that of the limit: μ − β₀ = (1 − q) Σ_c β_c C_c.

The maps μ ± δ_b, b = 1 … 100, are then cut and vote as the maps of REPEAT do. Both signs are used because noise is as
likely as its mirror image, so that an excess under one sign is balanced by a lack under the other.

The error of p comes from the error of β, to which each pair of masks j contributes e_j = (XᵀX)⁻¹ Σ_{n in j} x_n ε_n.
Pairs are used because effects of an even number of cells are equal in a mask and its complement, where x has opposite
signs, so that they cancel in the sum over both. With other masks, β would be β + Σ_j ± e_j with random signs (the wild
bootstrap), and p would move accordingly under the same noise. The mean square of ten such moves plus Var(votes of a
pair μ ± δ) / 100, the error of the resampling, estimates the mean square error of p. The mean square error of
K independent repeats is Var(votes) / K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.engine.masks import Basis, Draws, sent
from repeat_xai.engine.scheduler import Estimate
from repeat_xai.methods.provenance import MethodMaps
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.thresholds import Threshold
from repeat_xai.methods.votes import Votes, weighted_votes
from repeat_xai.seeds import fold, uniforms
from repeat_xai.types import Image

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

RESAMPLES = 100
"""Number of resampled maps, each of which is used with both signs of its noise."""
MAPS_AT_A_TIME = {"cpu": 10, "cuda": 100}
"""Resampled maps of 224×224 pixels made together: as many as fit a CPU's caches or a small GPU's memory."""
FEWEST_MASKS = 10
"""Fewest masks of a repeat: with fewer, its noise is too skewed to be as likely as its mirror image."""
BLOCKS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32)
"""Numbers of blocks after which an automatic budget is judged: from 256 masks of 7×7 cells to 4,096."""
MAX_BUDGET = 100_000
"""Largest budget that can be given: all its masks are held in memory."""
JUDGED_SIDE = 28
"""Side of the grid of pixels on which the error is judged: enough for a mean, and 64 times fewer than 224×224."""
MARGIN = 0.95
"""An automatic budget stops at this share of the error of independent repeats."""
MOVES = 10
"""Random moves of β from which the error is estimated."""
RIDGE = 1e-4
"""Strength of the ridge regression, as a share of the masks' own variance."""


@final
@dataclass(frozen=True, eq=False)
class MeasuredMasks:
    """Masks, and how similar the image stays under each."""

    draws: Draws
    similarity: Float[Tensor, " masks"]


class Regressors(NamedTuple):
    """The masks' means over squares as a regression needs them, with a constant before them."""

    design: Float[Tensor, "masks terms"]
    """X: 1 and m_c − q for each mask."""
    solver: Float[Tensor, "terms masks"]
    """(XᵀX)⁻¹Xᵀ, with the ridge."""
    free: Float[Tensor, ""]
    """Share of the differences within pairs of masks that the regression leaves free."""


class Fit(NamedTuple):
    """The regression of similarities on masks."""

    beta: Float[Tensor, " terms"]
    errors: Float[Tensor, "terms pairs"]
    """e_j: the contribution of each pair of masks to the error of β."""


@final
class SharedSums:
    """Whatever does not depend on the target, computed once for all estimates of an image after a number of masks."""

    def __init__(self, *, keep: bool = False) -> None:
        self.keep = keep
        self._masks = 0
        self._values: dict[object, Tensor] = {}

    def of(self, masks: int, name: object, make: Callable[[], Tensor]) -> Tensor:
        """Return the tensor of this name after so many masks; those after fewer masks are dropped."""
        if not self.keep:
            return make()
        if masks != self._masks:
            self._masks, self._values = masks, {}
        if name not in self._values:
            self._values[name] = make()
        return self._values[name]


NOT_SHARED = SharedSums()
"""Keeps nothing: for an estimate that is alone."""


@final
@dataclass(frozen=True, kw_only=True)
class FastEstimator:
    """How the votes of REPEAT are estimated from one set of masks."""

    base: Relax
    threshold: Threshold
    votes: Votes
    repeats: int
    budget: int | None
    """Number of masks; None draws as many as the error asks."""
    tolerance: float | None
    fewest_blocks: int = 2
    """Fewest blocks of a given budget: with a single block the stated error is too uncertain."""

    @property
    def blocks(self) -> tuple[int, ...]:
        """Numbers of blocks after which the estimate is judged."""
        if self.budget is None:
            return BLOCKS
        return (max(self.fewest_blocks, -(-self.budget // self.base.grid.block)),)

    @property
    def calls(self) -> int:
        """Encoder calls at most: the masks of every block, and the image itself."""
        return self.blocks[-1] * self.base.grid.block + 1

    def estimate(
        self, basis: Basis, image: Image, *, seed: int, shared: SharedSums = NOT_SHARED
    ) -> Estimate[MethodMaps]:
        """Ask for similarities until p is accurate enough, and return the maps with what was used and reached.

        `shared` is given to all estimates of one image that differ in their targets only.
        """
        row, drawn = fold(seed, "pool", image.photo.digest), 0  # the word is part of the seed: results depend on it
        parts: list[MeasuredMasks] = []
        for blocks in self.blocks:
            draws = basis.draw_blocks(seed=row, start=drawn, stop=blocks)
            parts.append(MeasuredMasks(draws, (yield draws)))
            drawn = blocks
            measured = joined(parts)
            masks = len(measured.similarity)
            drawing = partial(resample, masks, self.base.masks, seed=fold(row, "resamples"))
            counts = sent(shared.of(masks, "counts", drawing), basis.rows.device)
            fit = regression(basis, measured)
            error, target = (yield self.judge(basis, measured, fit, counts, shared, seed=row)).tolist()
            if error <= (self.tolerance or MARGIN * target):
                break
        reached = error <= (self.tolerance or target)
        record = {
            "masks": len(measured.similarity),
            "error": error,
            "error_of_repeats": target,
            "stopped": "fixed" if self.budget is not None else "accurate enough" if reached else "at its ceiling",
        }
        if self.budget is not None and self.budget != record["masks"]:
            record["asked"] = self.budget
        p, share = self.tally(basis, measured, fit, counts, shared)
        maps = [p, p * (1 - p), share]
        if self.base.target is not None:
            maps.append(effect(basis, fit.beta))
        p, uncertainty, share, *others = yield torch.stack(maps).float()
        return MethodMaps(p, uncertainty, share, others[0] if others else None, {"budget": record})

    def cast(self, maps: Float[Tensor, "maps height width"]) -> tuple[Tensor, Tensor]:
        """Return which pixels each map calls important, and its weighted votes, written over the map."""
        return weighted_votes(maps, self.threshold, self.votes, self.base.zero)

    def tally(
        self,
        basis: Basis,
        measured: MeasuredMasks,
        fit: Fit,
        counts: Float[Tensor, "resamples masks"],
        shared: SharedSums = NOT_SHARED,
    ) -> tuple[Map, Map]:
        """Cut and count the resampled maps, and return p and the share of votes."""
        mean = mean_maps(basis, fit.beta[None], self.base)
        p = share = torch.zeros_like(mean[0])
        for noise in noises(basis, measured, counts, self.base, shared):
            both = mean.new_empty(2 * len(noise), *mean.shape[1:])
            torch.add(mean, noise, out=both[: len(noise)])
            torch.sub(mean, noise, out=both[len(noise) :])
            votes, weighted = self.cast(both)
            p, share = p + weighted.sum(0), share + votes.sum(0)
        return p / (2 * RESAMPLES), share / (2 * RESAMPLES)

    def judge(
        self,
        basis: Basis,
        measured: MeasuredMasks,
        fit: Fit,
        counts: Float[Tensor, "resamples masks"],
        shared: SharedSums = NOT_SHARED,
        *,
        seed: int,
    ) -> Float[Tensor, 2]:
        """Return the error of p estimated from these masks, and the error of `repeats` independent repeats."""
        pixels, (beta, errors) = basis.thinned(JUDGED_SIDE), fit
        drawn = torch.from_numpy(uniforms(fold(seed, "signs"), start=0, stop=MOVES, width=errors.shape[1]))
        signs = sent(torch.where(drawn < 0.5, 1.0, -1.0), beta.device).to(beta.dtype)
        means = mean_maps(basis, torch.cat((beta[None], beta + signs @ errors.T)), self.base)[:, *pixels]
        noise = torch.cat(list(noises(basis.at(*pixels), measured, counts, self.base, shared)))
        both = torch.stack((noise, -noise))
        voted = self.cast((means[:, None, None] + both).flatten(0, 2))[1].view(len(means), *both.shape)
        moved = (voted[1:].mean((1, 2)) - voted[0].mean((0, 1))).square().mean()
        resampling = voted[0].mean(0).var(0).mean() / len(noise)
        variance = voted[0].flatten(0, 1).var(0).mean()
        return torch.stack((moved + resampling, variance / self.repeats)).sqrt()


def joined(parts: list[MeasuredMasks]) -> MeasuredMasks:
    """Return several sets of measured masks as one."""
    grids, shifts = (torch.cat(tensors) for tensors in zip(*(part.draws for part in parts), strict=True))
    return MeasuredMasks(Draws(grids, shifts), torch.cat([part.similarity for part in parts]))


def regressors(basis: Basis, draws: Draws) -> Regressors:
    """Return what the ridge regression on these masks needs, whatever is regressed on them."""
    keep = basis.grid.keep
    means = basis.squares.masks(draws, basis.rows.dtype).flatten(1) - keep
    design = F.pad(means, (1, 0), value=1.0)
    products = design.T @ design
    products.diagonal()[1:] += RIDGE * len(design) * keep * (1 - keep)
    solver = torch.cholesky_solve(design.T, torch.linalg.cholesky_ex(products).L)
    differences = (solver[:, 0::2] - solver[:, 1::2]) * (design[0::2] - design[1::2]).T
    return Regressors(design, solver, 1 - differences.sum() / len(design))


def regression(basis: Basis, measured: MeasuredMasks) -> Fit:
    """Fit β by ridge regression of the similarities on the masks, with its errors."""
    design, solver, free = regressors(basis, measured.draws)
    beta = solver @ measured.similarity
    residual = measured.similarity - design @ beta
    return Fit(beta, (solver * residual).view(len(beta), -1, 2).sum(2) / free.sqrt())


def mean_maps(basis: Basis, betas: Float[Tensor, "maps terms"], relax: Relax) -> Float[Tensor, "maps height width"]:
    """Return μ: the limit of RELAX's map as the number of masks grows."""
    keep, cells = basis.grid.keep, basis.grid.cells
    rows, columns = basis.covariances
    effects = rows @ betas[:, 1:].view(-1, cells, cells) @ columns.T
    products = keep * betas[:, :1, None] + keep * (1 - keep) * effects
    return products / keep if relax.normalise == "mask_sum" else products


def effect(basis: Basis, beta: Float[Tensor, " terms"]) -> Map:
    """Return μ − β₀: how much higher the mean similarity is when a pixel is kept than overall, in the limit."""
    cells, (rows, columns) = basis.grid.cells, basis.covariances
    return (1 - basis.grid.keep) * (rows @ beta[1:].view(cells, cells) @ columns.T)


def resample(measured: int, masks: int, *, seed: int) -> Float[Tensor, "resamples masks"]:
    """Return how often each measured mask is drawn, when as many masks as a repeat has are drawn with replacement."""
    counts = np.empty((RESAMPLES, measured))
    for number in range(RESAMPLES):  # one by one, since all of them together would need much memory
        drawn = (uniforms(seed, start=number, stop=number + 1, width=masks)[0] * measured).astype("int64")
        counts[number] = np.bincount(drawn, minlength=measured)
    return torch.from_numpy(counts)


def divisors(
    basis: Basis, draws: Draws, counts: Float[Tensor, "maps masks"], relax: Relax
) -> Float[Tensor, "maps height width"]:
    """Return what Σ s·M is divided by in RELAX's maps, which does not depend on s; infinite where Σ M is zero."""
    masks = basis.totals(draws, counts.T)
    divisor = masks if relax.normalise == "mask_sum" else counts.sum(1)[:, None, None]
    return torch.where(masks > 0, divisor, torch.inf)


def relax_maps(
    basis: Basis,
    measured: MeasuredMasks,
    counts: Float[Tensor, "maps masks"],
    relax: Relax,
    divisor: Float[Tensor, "maps height width"] | None = None,
) -> Float[Tensor, "maps height width"]:
    """Return RELAX's maps from measured masks that count several times each; `divisor` may be known already."""
    divisor = divisors(basis, measured.draws, counts, relax) if divisor is None else divisor
    return basis.totals(measured.draws, (counts * measured.similarity).T).div_(divisor)


def noises(
    basis: Basis,
    measured: MeasuredMasks,
    counts: Float[Tensor, "resamples masks"],
    relax: Relax,
    shared: SharedSums = NOT_SHARED,
) -> Iterator[Float[Tensor, "maps height width"]]:
    """Yield δ, some maps at a time: the deviation of each resampled map from the map of all measured masks."""
    every = torch.ones_like(counts[:1])
    height, width = basis.rows.shape[1], basis.columns.shape[1]
    numbers = max(height * width, basis.grid.cells**4)
    parts = torch.split(counts, max(1, MAPS_AT_A_TIME[counts.device.type] * 224**2 // numbers))
    for number, part in enumerate(parts):
        weights, place = torch.cat((part, every)), (height, width, number)
        divisor = shared.of(len(measured.similarity), place, partial(divisors, basis, measured.draws, weights, relax))
        maps = relax_maps(basis, measured, weights, relax, divisor)
        yield maps[:-1] - maps[-1]
