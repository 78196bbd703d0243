"""REPEAT from one designed pool of masks, in place of K independent sets of N.

REPEAT asks how often a pixel passes the threshold over independent sets of N masks. Each set's map is the true mean map
plus the noise of N masks. A pool of P ≪ K·N masks, drawn as orthogonal arrays, gives both:

    mean map   μ = E[s·M] / q, from the regression s = β₀ + Σ_c β_c (m_c − q) + ε, with m_c the mean of the mask over
               square c of the image:    E[s·M] = q β₀ + q(1 − q) Σ_c β_c C_c,    C_c q(1 − q) = Cov(m_c, M)
    noise      δ_b = R_b − R, where R_b = Σ w_b s·M / Σ w_b M over N masks drawn from the pool with replacement

The maps μ ± δ_b, b = 1 … 100, are then cut, and vote, as REPEAT's own do: noise is as likely as its mirror image, and
what one sign gives too much the other gives too little.

The error of p is that of β, to which each pair of masks j adds e_j = (XᵀX)⁻¹ Σ_{n in j} x_n ε_n: pairs, for in the sum
over a mask and its complement all effects of an even number of cells cancel. Were the masks others, β would be
β + Σ_j ± e_j, with signs at random (the wild bootstrap), and p would move by so much under the same noise. To the mean
square of ten such moves is added Var(votes of a pair μ ± δ) / 100, the resampling's. The mean square error of K
independent repeats is Var(votes) / K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.engine.masks import Basis, Draws, sent
from repeat_xai.engine.scheduler import Estimate
from repeat_xai.methods.provenance import Maps
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.votes import Votes, indicator, weights
from repeat_xai.seeds import fold, uniforms
from repeat_xai.types import Image

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

RESAMPLES = 100
"""Each with its mirror image."""
AT_ONCE = {"cpu": 10, "cuda": 100}
"""Resampled maps of 224×224 pixels made at once: as many as a CPU's caches or a small GPU's memory can take."""
FEWEST = 10
"""Masks of a repeat: with fewer, its map scatters too unevenly for noise to be as likely as its mirror image."""
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32)
"""Blocks of an automatic pool: from a floor of 256 masks of 7×7 cells to a ceiling of 4,096."""
MOST_POOL = 100_000
"""Masks of a pool of a given size: all of them are held in memory."""
JUDGED = 28
"""Pixels a side on which it is judged: enough for a mean, and sixty-four times fewer than usual."""
MARGIN = 0.95
"""How far below the error of independent repeats an automatic pool goes."""
MOVES = 10
"""Of β, from which the error is judged."""
RIDGE = 1e-4


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """Masks, and how alike the image stays under each."""

    draws: Draws
    similarity: Float[Tensor, " masks"]


class Fit(NamedTuple):
    """The regression of similarities on masks."""

    beta: Float[Tensor, " terms"]
    errors: Float[Tensor, "terms pairs"]
    """e: what each pair of masks adds to the error of β."""


@final
@dataclass(frozen=True, kw_only=True)
class Pooled:
    """How votes are estimated from a pool."""

    base: Relax
    threshold: str
    votes: Votes
    repeats: int
    pool: int | None
    """Masks, or None for as many as the error asks."""
    tolerance: float | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Blocks of masks after which the pool is judged."""
        return SIZES if self.pool is None else (max(2, -(-self.pool // self.base.grid.block)),)

    @property
    def calls(self) -> int:
        """Encoder calls at most: every block's masks, and the whole image."""
        return self.sizes[-1] * self.base.grid.block + 1

    def estimate(self, basis: Basis, image: Image, *, seed: int) -> Estimate[Maps]:
        """The votes, and how many masks they took, with what error, and why no more."""
        row, drawn = fold(seed, "pool", image.photo.digest), 0
        pools: list[Pool] = []
        for blocks in self.sizes:
            draws = basis.draw_blocks(seed=row, start=drawn, stop=blocks)
            pools.append(Pool(draws, (yield draws)))
            drawn = blocks
            pool = joined(pools)
            counts = resample(len(pool.similarity), self.base.masks, seed=fold(row, "resamples"))
            counts, fit = sent(counts, basis.rows.device), regression(basis, pool)
            error, target = (yield self.judge(basis, pool, fit, counts, seed=row)).tolist()
            if error <= (self.tolerance or MARGIN * target):
                break
        reached = error <= (self.tolerance or target)
        about = {
            "masks": len(pool.similarity),
            "error": error,
            "error_of_repeats": target,
            "stopped": "fixed" if self.pool is not None else "accurate enough" if reached else "at its ceiling",
        }
        p, share = self.tally(basis, pool, fit, counts)
        p, uncertainty, share = yield torch.stack((p, p * (1 - p), share)).float()
        return Maps(p, uncertainty, share, {"pool": about})

    def cast(self, maps: Float[Tensor, "maps height width"]) -> tuple[Tensor, Tensor]:
        """Which pixels each map chooses, and its weighted votes."""
        chosen = indicator(maps, self.threshold).double()
        return chosen, chosen * weights(maps, self.votes)

    def tally(self, basis: Basis, pool: Pool, fit: Fit, counts: Float[Tensor, "resamples masks"]) -> tuple[Map, Map]:
        """Cut and count the resampled maps: p, and the share of votes."""
        mean = mean_maps(basis, fit.beta[None], self.base)
        p = share = torch.zeros_like(mean[0])
        for noise in noises(basis, pool, counts, self.base):
            chosen, voted = self.cast(torch.cat((mean + noise, mean - noise)))
            p, share = p + voted.sum(0), share + chosen.sum(0)
        return p / (2 * RESAMPLES), share / (2 * RESAMPLES)

    def judge(
        self, basis: Basis, pool: Pool, fit: Fit, counts: Float[Tensor, "resamples masks"], *, seed: int
    ) -> Float[Tensor, 2]:
        """The error of p from this pool, and that of `repeats` independent repeats."""
        pixels, (beta, errors) = basis.thinned(JUDGED), fit
        drawn = torch.from_numpy(uniforms(fold(seed, "signs"), start=0, stop=MOVES, width=errors.shape[1]))
        signs = sent(torch.where(drawn < 0.5, 1.0, -1.0), beta.device).to(beta.dtype)
        means = mean_maps(basis, torch.cat((beta[None], beta + signs @ errors.T)), self.base)[:, *pixels]
        noise = torch.cat(list(noises(basis.at(*pixels), pool, counts, self.base)))
        both = torch.stack((noise, -noise))
        voted = self.cast((means[:, None, None] + both).flatten(0, 2))[1].view(len(means), *both.shape)
        moved = (voted[1:].mean((1, 2)) - voted[0].mean((0, 1))).square().mean()
        resampling = voted[0].mean(0).var(0).mean() / len(noise)
        variance = voted[0].flatten(0, 1).var(0).mean()
        return torch.stack((moved + resampling, variance / self.repeats)).sqrt()


def joined(pools: list[Pool]) -> Pool:
    """One pool of several."""
    grids, shifts = (torch.cat(parts) for parts in zip(*(pool.draws for pool in pools), strict=True))
    return Pool(Draws(grids, shifts), torch.cat([pool.similarity for pool in pools]))


def regression(basis: Basis, pool: Pool) -> Fit:
    """β by ridge regression, and its errors."""
    keep = basis.grid.keep
    means = basis.squares.masks(pool.draws, basis.rows.dtype).flatten(1) - keep
    design = F.pad(means, (1, 0), value=1.0)
    products = design.T @ design
    products.diagonal()[1:] += RIDGE * len(design) * keep * (1 - keep)
    solver = torch.cholesky_solve(design.T, torch.linalg.cholesky_ex(products).L)
    beta = solver @ pool.similarity
    residual = pool.similarity - design @ beta
    apart = (solver[:, 0::2] - solver[:, 1::2]) * (design[0::2] - design[1::2]).T
    free = 1 - apart.sum() / len(design)
    return Fit(beta, (solver * residual).view(len(beta), -1, 2).sum(2) / free.sqrt())


def mean_maps(basis: Basis, betas: Float[Tensor, "maps terms"], relax: Relax) -> Float[Tensor, "maps height width"]:
    """μ: what RELAX's map tends to as masks grow without end."""
    keep, cells = basis.grid.keep, basis.grid.cells
    rows, columns = basis.covariances
    effects = rows @ betas[:, 1:].view(-1, cells, cells) @ columns.T
    products = keep * betas[:, :1, None] + keep * (1 - keep) * effects
    return products / keep if relax.normalise == "mask_sum" else products


def resample(pool: int, masks: int, *, seed: int) -> Float[Tensor, "resamples masks"]:
    """How often each mask of the pool is drawn, when as many as a repeat takes are drawn with replacement."""
    counts = np.empty((RESAMPLES, pool))
    for number in range(RESAMPLES):  # all at once would take much memory where there are many masks
        drawn = (uniforms(seed, start=number, stop=number + 1, width=masks)[0] * pool).astype("int64")
        counts[number] = np.bincount(drawn, minlength=pool)
    return torch.from_numpy(counts)


def relax_maps(
    basis: Basis, pool: Pool, counts: Float[Tensor, "maps masks"], relax: Relax
) -> Float[Tensor, "maps height width"]:
    """RELAX's maps from the pool's masks, each counted so often."""
    masks, products = basis.totals(pool.draws, torch.cat((counts, counts * pool.similarity)).T).chunk(2)
    divisor = masks if relax.normalise == "mask_sum" else counts.sum(1)[:, None, None]
    return torch.where(masks > 0, products / divisor, 0.0)


def noises(
    basis: Basis, pool: Pool, counts: Float[Tensor, "resamples masks"], relax: Relax
) -> Iterator[Float[Tensor, "maps height width"]]:
    """δ: how maps of as many masks as a repeat takes scatter about the pool's own; some at a time."""
    whole = torch.ones_like(counts[:1])
    height, width = basis.rows.shape[1], basis.columns.shape[1]
    numbers = max(height * width, basis.grid.cells**4)
    for part in torch.split(counts, max(1, AT_ONCE[counts.device.type] * 224**2 // numbers)):
        maps = relax_maps(basis, pool, torch.cat((part, whole)), relax)
        yield maps[:-1] - maps[-1]
