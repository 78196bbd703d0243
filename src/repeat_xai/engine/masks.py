"""Masks are drawn from a seed as small grids, and sums over masks are computed as sums over grids.

A mask is a small grid of kept (1) and dropped (0) cells, enlarged bilinearly and shifted at random. Enlarging and
shifting are linear and act on rows and columns separately, so with A_t the matrix of shift t along one axis

    M = A_y g A_xᵀ        and so        Σ_n w_n M_n = Σ_{y,x} A_y ( Σ_{n: t_n = (y,x)} w_n g_n ) A_xᵀ :

sums over any number of masks are kept as one small grid for each shift, and are turned into pixels once, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose, expect_number
from repeat_xai.seeds import uniforms

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

Style = Literal["relax", "rise"]

MASKS_PER_DRAW = 2048
"""Masks of a row that are drawn at a time."""
MAX_NUMBERS = 2**24
"""Most numbers held in memory while summing over masks."""
MAX_CELLS = 50
"""Most cells per side: the memory for the sums grows with their fourth power."""


def relax(length: int, cells: int) -> Float[Tensor, "shifts length cells"]:
    """Return the matrices of the authors' masks: enlarged to the image, padded by reflection, cropped at a shift."""
    if length <= cells // 2:
        raise ConfigurationError(f"{cells} cells are too many for an image of {length} pixels a side")
    padded = F.pad(_enlarged(length, cells, mirror=False).T[None], (cells // 2, cells // 2), mode="reflect")[0].T
    return padded.unfold(0, length, 1)[:cells].transpose(1, 2)


def rise(length: int, cells: int) -> Float[Tensor, "shifts length cells"]:
    """Return the matrices of RISE's masks (Petsiuk et al. 2018): enlarged to one cell more than the image, cropped."""
    cell = -(-length // cells)
    return _enlarged((cells + 1) * cell, cells, mirror=True).unfold(0, length, 1)[:cell].transpose(1, 2)


STYLES: dict[str, Callable[[int, int], Tensor]] = {f.__name__: f for f in (relax, rise)}


@final
@dataclass(frozen=True, kw_only=True)
class Grid:
    """How masks are drawn: a grid of `cells` × `cells` cells, each kept with probability `keep`."""

    cells: int = 7
    """The number of cells along each side of the grid."""
    keep: float = 0.5
    """Probability that a cell is kept."""
    style: Style = "relax"
    """Shape of the masks: the authors' (`relax`) or RISE's (`rise`)."""

    def __post_init__(self) -> None:
        at_least("cells", self.cells, 2, MAX_CELLS)
        expect_number("keep", self.keep)
        if not 0 < self.keep < 1:
            raise ConfigurationError(f"keep must lie between 0 and 1, not {self.keep}")
        choose("style", self.style, STYLES)

    @property
    def order(self) -> int:
        """Order of the smallest Sylvester-Hadamard matrix with a column for every cell beside its constant column."""
        return int(2 ** (self.cells**2).bit_length())

    @property
    def block(self) -> int:
        """Number of masks in a block: each row of that matrix, and its complement."""
        return 2 * self.order


class Draws(NamedTuple):
    """Masks, given by their grids and by their shifts down and to the right."""

    grids: Float[Tensor, "masks cells cells"]
    shifts: Int[Tensor, "masks 2"]


@final
@dataclass(frozen=True, eq=False)
class Basis:
    """The matrices that turn grids into masks of one size: for each axis, one for each shift."""

    grid: Grid
    rows: Float[Tensor, "down height cells"]
    columns: Float[Tensor, "right width cells"]

    @staticmethod
    def of(grid: Grid, height: int, width: int, device: torch.device) -> Basis:
        """Return the basis for masks of this size."""
        axis = STYLES[grid.style]
        return Basis(grid, axis(height, grid.cells).to(device), axis(width, grid.cells).to(device))

    def thinned(self, side: int) -> tuple[slice, slice]:
        """Return the rows and columns of about `side` × `side` pixels, evenly spaced."""
        down, right = (max(1, axis.shape[1] // side) for axis in (self.rows, self.columns))
        return slice(None, None, down), slice(None, None, right)

    def at(self, rows: slice, columns: slice) -> Basis:
        """Return the basis of the same masks at some of their pixels."""
        return Basis(self.grid, self.rows[:, rows], self.columns[:, columns])

    @cached_property
    def squares(self) -> Basis:
        """The basis of the masks' means over squares of the image, as many as there are cells."""
        rows, columns = (
            F.adaptive_avg_pool1d(axis.transpose(1, 2), self.grid.cells).transpose(1, 2)
            for axis in (self.rows, self.columns)
        )
        return Basis(self.grid, rows, columns)

    @cached_property
    def covariances(self) -> tuple[Float[Tensor, "height cells"], Float[Tensor, "width cells"]]:
        """Covariance of the mask at a pixel with its mean over a square: factors for rows and for columns."""
        rows = self.rows @ self.squares.rows.transpose(1, 2)
        columns = self.columns @ self.squares.columns.transpose(1, 2)
        return rows.mean(0), columns.mean(0)

    def to(self, dtype: torch.dtype) -> Basis:
        """Return the basis in another precision."""
        return Basis(self.grid, self.rows.to(dtype), self.columns.to(dtype))

    def row(self, masks: int, *, seed: int) -> Iterator[Draws]:
        """Yield masks 0 to `masks` of the endless row that belongs to the seed, some at a time."""
        for start in range(0, masks, MASKS_PER_DRAW):
            yield self.draw(seed=seed, start=start, stop=min(start + MASKS_PER_DRAW, masks))

    def draw(self, *, seed: int, start: int, stop: int) -> Draws:
        """Return masks number `start` to `stop` of the endless row that belongs to the seed."""
        cells = self.grid.cells**2
        table = torch.from_numpy(uniforms(seed, start=start, stop=stop, width=cells + 2))
        return self._draws(table[:, :cells] < self.grid.keep, table[:, cells:])

    def draw_blocks(self, *, seed: int, start: int, stop: int) -> Draws:
        """Return blocks number `start` to `stop` of the endless row of designed masks that belongs to the seed.

        At keep ½ the grids are a randomised orthogonal array: random columns of a Hadamard matrix with random signs,
        one for each cell, each row followed by its complement under the same shift. Every single mask has the same
        distribution as one drawn independently, but within a block the effects of single cells are not confounded
        with each other nor with interactions of two cells. At another keep the masks are independent.
        """
        cells, order, block = self.grid.cells**2, self.grid.order, self.grid.block
        if self.grid.keep != 0.5:
            return self.draw(seed=seed, start=start * block, stop=stop * block)
        table = torch.from_numpy(uniforms(seed, start=start, stop=stop, width=(order - 1) + cells + 2 * order))
        ranks, flips, shifts = torch.split(table, [order - 1, cells, 2 * order], dim=1)
        columns = hadamard(order)[:, 1 + ranks.argsort(1)[:, :cells]].transpose(0, 1)
        signs = columns * torch.where(flips < 0.5, -1, 1)[:, None]
        kept = torch.stack((signs, -signs), 2).view(-1, cells) > 0
        return self._draws(kept, shifts.reshape(-1, 2).repeat_interleave(2, 0))

    def _draws(self, kept: Bool[Tensor, "masks cells2"], shifts: Float[Tensor, "masks 2"]) -> Draws:
        """Make grids and shifts on the host, and send them to the device of the basis."""
        moved = (shifts * torch.tensor([len(self.rows), len(self.columns)])).long()
        grids = kept.to(self.rows.dtype).view(-1, self.grid.cells, self.grid.cells)
        return Draws(sent(grids, self.rows.device), sent(moved, self.rows.device))

    def masks(self, draws: Draws, dtype: torch.dtype) -> Float[Tensor, "masks height width"]:
        """Return the masks themselves, M = A_y g A_xᵀ."""
        down, right = draws.shifts.unbind(1)
        rows, columns, grids = (t.to(dtype) for t in (self.rows, self.columns, draws.grids))
        return rows[down] @ grids @ columns[right].transpose(1, 2)

    def totals(self, draws: Draws, weights: Float[Tensor, "masks kinds"]) -> Float[Tensor, "kinds height width"]:
        """Return Σ w·M for each kind of weight, from the masks where these are small, otherwise from the grids."""
        height, width = self.rows.shape[1], self.columns.shape[1]
        small = height * width < len(self.rows) * len(self.columns) * self.grid.cells**2
        if small and height * width * len(weights) <= MAX_NUMBERS:
            return (weights.T @ self.masks(draws, weights.dtype).flatten(1)).view(-1, height, width)
        return self.maps(self.sums(draws, weights))

    def sums(self, draws: Draws, weights: Float[Tensor, "masks kinds"]) -> Float[Tensor, "kinds down right cells2"]:
        """Return Σ w·g for each kind of weight and each shift."""
        down, right = draws.shifts.unbind(1)
        shifts = F.one_hot(down * len(self.columns) + right, len(self.rows) * len(self.columns)).to(weights.dtype)
        grids = draws.grids.flatten(1)
        kinds_at_a_time = max(1, MAX_NUMBERS // grids.numel())
        sums = [shifts.T @ (part.T[:, :, None] * grids) for part in torch.split(weights, kinds_at_a_time, dim=1)]
        return torch.cat(sums).view(weights.shape[1], len(self.rows), len(self.columns), -1)

    def maps(self, sums: Float[Tensor, "kinds down right cells2"]) -> Float[Tensor, "kinds height width"]:
        """Return Σ w·M for each kind of weight, from its sums over grids."""
        cells = self.grid.cells
        inner = sums.view(*sums.shape[:3], cells, cells).permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2)
        rows = self.rows.transpose(0, 1).flatten(1)
        columns = self.columns.transpose(0, 1).flatten(1)
        return rows @ inner @ columns.T


@cache
def hadamard(order: int) -> Int[Tensor, "order order"]:
    """Return Sylvester's Hadamard matrix: entries ±1, orthogonal columns, the first one constant.

    >>> hadamard(2).tolist()
    [[1, 1], [1, -1]]
    """
    bits = torch.arange(order)
    shared = bits[:, None] & bits
    parity = torch.zeros_like(shared)
    while shared.any():
        parity, shared = parity ^ (shared & 1), shared >> 1
    return 1 - 2 * parity


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Send a tensor from the host to the device, without waiting for it to arrive."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        np.copyto(pinned.numpy(), tensor.numpy())  # numpy copies on one thread; waking others would take longer
        tensor = pinned
    return tensor.to(device, non_blocking=True)


def _enlarged(length: int, cells: int, *, mirror: bool) -> Float[Tensor, "length cells"]:
    """Return bilinear enlargement along one axis as a matrix; outside the cell centres the grid is mirrored or held."""
    places = (torch.arange(length, dtype=torch.float64) + 0.5) * cells / length - 0.5
    below = places.floor()
    matrix = torch.zeros(length, cells, dtype=torch.float64)
    for neighbour, weight in ((below, 1 - (places - below)), (below + 1, places - below)):
        inside = (cells - 1) - ((cells - 1) - neighbour.abs()).abs() if mirror else neighbour
        matrix.scatter_add_(1, inside.clamp(0, cells - 1).long()[:, None], weight[:, None])
    return matrix
