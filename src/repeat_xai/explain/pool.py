"""REPEAT from one designed pool of masks, in place of K independent sets of N.

REPEAT asks how often a pixel passes the threshold over independent sets of N masks. Each set's map is the true mean map
plus the noise of N masks. A pool of P ≪ K·N masks, drawn as orthogonal arrays, gives both:

    mean map   μ = E[s·M] / q, from the regression s = β₀ + Σ_c β_c (g_c − q) + ε on the grids' cells:
               E[s·M] = q β₀ + q(1 − q) Σ_c β_c B̄_c + mean(ε·M),    B̄ the basis averaged over shifts
    noise      R_b − R, where R_b = Σ w_b s·M / Σ w_b M over N masks drawn from the pool with replacement

The maps μ + (R_b − R), b = 1 … 100, are then cut, and vote, as REPEAT's own do.

The error of p is judged by halves. With n blocks of masks split into n_A and n_B, let the halves' p differ by d² in the
mean square, of which 2v is due to their finite number of resampled maps, v = mean Var(votes) / 100. The mean square
error of the whole is then (d² − 2v) n_A n_B / n² + v; that of K independent repeats is mean Var(votes) / K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.engine import Estimate
from repeat_xai.explain.votes import Votes, indicator, weights
from repeat_xai.importance.relax import Relax
from repeat_xai.masks import Basis, Draws, sent
from repeat_xai.provenance import Maps
from repeat_xai.seeds import fold, uniforms
from repeat_xai.types import Image

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.types import Map

RESAMPLES = 100
AT_ONCE = 20
"""Resampled maps made at once: more need more memory and gain nothing."""
SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
"""Those of an automatic pool: from a floor of 256 masks of 7×7 cells to a ceiling of 4,096."""
JUDGED = 56
"""Pixels a side on which it is judged: enough for a mean, and sixteen times fewer than usual."""
MARGIN = 0.9
"""How far below the error of independent repeats an automatic pool goes, for its own is judged a little low."""
RIDGE = 1e-3


@final
@dataclass(frozen=True, eq=False)
class Block:
    """Some masks of the pool, and how alike the image stays under each."""

    draws: Draws
    similarity: Float[Tensor, " masks"]

    @staticmethod
    def join(blocks: list[Block]) -> Block:
        grids, shifts = (torch.cat(parts) for parts in zip(*(block.draws for block in blocks), strict=True))
        return Block(Draws(grids, shifts), torch.cat([block.similarity for block in blocks]))


@final
@dataclass(frozen=True, eq=False)
class Tally:
    """What the resampled maps voted."""

    p: Map
    vote_share: Map
    variance: Map
    """Of one repeat's weighted vote."""


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
        row, size = fold(seed, "pool", image.photo.digest), self.base.grid.block
        blocks: list[Block] = []
        for count in self.sizes:
            new = [basis.draw_block(seed=row, number=number) for number in range(len(blocks), count)]
            similarity = yield Draws(*(torch.cat(parts) for parts in zip(*new, strict=True)))
            blocks += [Block(draws, part) for draws, part in zip(new, torch.split(similarity, size), strict=True)]
            error, target = (yield self.judge(basis.thinned(JUDGED), blocks, seed=row)).tolist()
            if error <= (self.tolerance or MARGIN * target):
                break
        reached = error <= (self.tolerance or target)
        about = {
            "masks": len(blocks) * size,
            "error": error,
            "error_of_repeats": target,
            "stopped": "fixed" if self.pool is not None else "accurate enough" if reached else "at its ceiling",
        }
        tally = self.tally(basis, Block.join(blocks), seed=fold(row, "whole"))
        p, share = yield torch.stack((tally.p, tally.vote_share))
        return Maps(p, p * (1 - p), share, {"pool": about})

    def tally(self, basis: Basis, pool: Block, *, seed: int) -> Tally:
        """Cut and count the resampled maps."""
        once = torch.ones_like(pool.similarity)[None]
        centre = mean_map(basis, pool, self.base) - relax_maps(basis, pool, once, self.base)[0]
        p, square, share = (torch.zeros_like(centre) for _ in range(3))
        for start in range(0, RESAMPLES, AT_ONCE):
            counts = resample(len(pool.similarity), self.base.masks, seed=seed, start=start, stop=start + AT_ONCE)
            maps = relax_maps(basis, pool, sent(counts, centre.device), self.base) + centre
            chosen = indicator(maps, self.threshold).double()
            voted = chosen * weights(maps, self.votes)
            p += voted.sum(0) / RESAMPLES
            square += voted.square().sum(0) / RESAMPLES
            share += chosen.sum(0) / RESAMPLES
        return Tally(p, share, (square - p**2).clamp_min(0) * RESAMPLES / (RESAMPLES - 1))

    def judge(self, basis: Basis, blocks: list[Block], *, seed: int) -> Float[Tensor, 2]:
        """The error of p from these blocks, and that of `repeats` independent repeats."""
        half = len(blocks) // 2
        a, b = (
            self.tally(basis, Block.join(part), seed=fold(seed, name))
            for name, part in (("a", blocks[:half]), ("b", blocks[half:]))
        )
        variance = (a.variance + b.variance).mean() / 2
        resampling = variance / RESAMPLES
        share = half * (len(blocks) - half) / len(blocks) ** 2
        apart = (a.p - b.p).square().mean() - 2 * resampling
        return torch.stack((apart.clamp_min(0) * share + resampling, variance / self.repeats)).sqrt()


def mean_map(basis: Basis, pool: Block, relax: Relax) -> Map:
    """μ: what RELAX's map tends to as masks grow without end."""
    keep, count = basis.grid.keep, len(pool.similarity)
    cells = pool.draws.grids.flatten(1) - keep
    design = torch.cat((torch.ones_like(cells[:, :1]), cells), 1)
    ridge = torch.full_like(design[0], RIDGE * count * keep * (1 - keep))
    ridge[0] = 0
    gram = design.T @ design + torch.diag(ridge)
    solved = torch.linalg.solve(gram, design.T)
    beta = solved @ pool.similarity
    residual = (pool.similarity - design @ beta) / (1 - (design * solved.T).sum(1))
    effects = basis.rows.mean(0) @ beta[1:].view(basis.grid.cells, -1) @ basis.columns.mean(0).T
    rest = basis.maps(basis.sums(pool.draws, residual[:, None] / count))[0]
    product: Tensor = keep * beta[0] + keep * (1 - keep) * effects + rest
    return product / keep if relax.normalise == "mask_sum" else product


def resample(pool: int, masks: int, *, seed: int, start: int, stop: int) -> Float[Tensor, "resamples masks"]:
    """How often each mask of the pool is drawn, when as many as a repeat takes are drawn with replacement."""
    drawn = torch.from_numpy((uniforms(seed, start=start, stop=stop, width=masks) * pool).astype("int64"))
    counts = torch.zeros(stop - start, pool, dtype=torch.float64)
    return counts.scatter_add_(1, drawn, torch.ones_like(drawn, dtype=torch.float64))


def relax_maps(
    basis: Basis, pool: Block, counts: Float[Tensor, "maps masks"], relax: Relax
) -> Float[Tensor, "maps height width"]:
    """RELAX's maps from the pool's masks, each counted so often."""
    sums = basis.maps(basis.sums(pool.draws, torch.cat((counts, counts * pool.similarity)).T))
    masks, products = sums.chunk(2)
    divisor = masks if relax.normalise == "mask_sum" else counts.sum(1)[:, None, None]
    return torch.where(masks > 0, products / divisor, 0.0)
