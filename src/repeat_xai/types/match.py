"""The result of matching two images: why each is similar to the other, and which of their parts go together.

A pair of a cell of A and a cell of B has an effect and a standard error. It is a certain match if

    effect − typical effect > z · error        typical effect = √(mean effect²),    z = Φ⁻¹(1 − (1 − level) / pairs)

The second term is Bonferroni's: with probability `level`, not one of all the pairs is called certain wrongly. Effects
are compared with the typical effect and not with zero, because under the cosine parts that have nothing in common have
a slight effect too, through the lengths of the codes; with enough masks, zero would be excluded for nearly every pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, OutputError, choose, reason, shown
from repeat_xai.files.arrays import ArrayKind, read_arrays
from repeat_xai.files.atomic import writing
from repeat_xai.types.explanation import SAVED, Explanation, arrays_of, from_arrays

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.figure import Figure

Side = Literal["a", "b"]
SIDES: tuple[Side, Side] = ("a", "b")
TINY = 1e-38
"""Smallest error that an effect is divided by."""
PAIRS = ArrayKind(("<f4",), dimensions=4, max_bytes=2**23)
"""Effects or errors in a file: up to 31×31 cells of each image."""
SAVED_MATCH = {f"{side}_{name}": kind for side in SIDES for name, kind in SAVED.items()} | {
    "effect": PAIRS,
    "error": PAIRS,
}
"""Arrays in the file of a match: those of both explanations, and those of the pairs."""


class Cell(NamedTuple):
    """A part of an image: one of the squares that a grid divides the encoder's input into."""

    row: int
    column: int


class Partner(NamedTuple):
    """A cell of A and a cell of B, and how much they go together."""

    a: Cell
    b: Cell
    effect: float
    """By how much more showing the cell of A raises the similarity when the cell of B is shown than when it is not."""
    error: float
    """Standard error of the effect."""

    @property
    def certainty(self) -> float:
        """The effect in standard errors, by which partners are ranked."""
        return self.effect / max(self.error, TINY)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Match:
    """Why an encoder finds two images similar, and which part of one goes with which part of the other."""

    a: Explanation
    """Which pixels of A make it similar to B."""
    b: Explanation
    """Which pixels of B make it similar to A."""
    effect: Float[Tensor, "rows columns rows columns"] = field(repr=False)
    """Effect of each pair of a cell of A (row and column) and a cell of B, as float32 in units of the similarity."""
    error: Float[Tensor, "rows columns rows columns"] = field(repr=False)
    """Standard error of each effect."""

    @property
    def cells(self) -> int:
        """Number of cells along each side of both images."""
        return len(self.effect)

    @property
    def encoder_calls(self) -> int:
        """Number of images that went through the encoder, masked copies included."""
        return int(self.a.provenance["encoder_calls"]) + int(self.b.provenance["encoder_calls"])

    @property
    def typical_effect(self) -> float:
        """The root mean square of all effects, which the effect of a match exceeds."""
        return self.effect.double().square().mean().sqrt().item()

    def partners(self, level: float = 0.95) -> list[Partner]:
        """Return the certain matches, the most certain first.

        With probability `level`, no pair among them has an effect of at most the typical effect. `level` lies above 0.5
        and below 1.
        """
        expect_level(level)
        quantile = NormalDist().inv_cdf(1 - (1 - level) / self.effect.numel())
        certain = self.effect.double() - self.typical_effect > quantile * self.error.double()
        return self._ranked(certain)

    def partners_of(self, cell: tuple[int, int], side: Side = "a") -> list[Partner]:
        """Return all pairs of one cell, certain or not, the most certain first.

        Args:
            cell: The row and the column of the cell, counted from 0 at the top left.
            side: Whether it is a cell of A (`a`) or of B (`b`).
        """
        choose("side", side, SIDES)
        if len(cell) != 2 or not all(isinstance(place, int) and 0 <= place < self.cells for place in cell):
            raise ConfigurationError(f"a cell is a row and a column from 0 to {self.cells - 1}, not {shown(cell)}")
        row, column = cell
        wanted = torch.zeros(self.effect.shape, dtype=torch.bool)
        wanted[(row, column) if side == "a" else (slice(None), slice(None), row, column)] = True
        return self._ranked(wanted)

    def strongest(self, level: float = 0.95, limit: int = 12) -> list[Partner]:
        """Return at most so many certain matches, in which no cell occurs twice: the most certain first."""
        chosen: list[Partner] = []
        for partner in self.partners(level):
            if len(chosen) < limit and all(partner.a != other.a and partner.b != other.b for other in chosen):
                chosen.append(partner)
        return chosen

    def _ranked(self, wanted: Tensor) -> list[Partner]:
        """Return these pairs, the most certain first."""
        pairs = [
            Partner(Cell(*place[:2]), Cell(*place[2:]), self.effect[*place].item(), self.error[*place].item())
            for place in wanted.nonzero().tolist()
        ]
        return sorted(pairs, key=lambda pair: -pair.certainty)

    def plot(self, path: str | Path | None = None, *, level: float = 0.95) -> Figure:
        """Draw both photos and lines between the strongest certain matches, and return the figure.

        `path` also writes it to a file, whose suffix says in which format: .png, .pdf or .svg.
        """
        from repeat_xai.output.figures import match_figure, save_figure

        figure = match_figure(self, level=level)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save(self, path: str | Path) -> None:
        """Write both explanations, the effects and their errors to one `.npz` file, which numpy alone can read.

        The file appears whole or not at all.
        """
        try:
            expect_valid_match(self)
            arrays = {"effect": self.effect.numpy(), "error": self.error.numpy()}
            for side, explanation in zip(SIDES, (self.a, self.b), strict=True):
                arrays |= {f"{side}_{name}": array for name, array in arrays_of(explanation).items()}
        except (TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"{path}: cannot be saved ({reason(error)})") from error
        with writing(Path(path)) as draft, draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @staticmethod
    def load(path: str | Path) -> Match:
        """Read a match that `save` has written.

        Any other file raises an OutputError, before it takes much memory or time.
        """
        try:
            arrays = read_arrays(Path(path), SAVED_MATCH)
            a, b = (
                from_arrays({name[2:]: array for name, array in arrays.items() if name.startswith(f"{side}_")})
                for side in SIDES
            )
            effect, error = (torch.from_numpy(arrays[name]) for name in ("effect", "error"))
            match = Match(a=a, b=b, effect=effect, error=error)
            expect_valid_match(match)
        except FileNotFoundError as error:
            raise OutputError(f"{path}: no such file") from error
        except OutputError:
            raise
        except Exception as error:  # libraries raise errors of many classes for damaged files
            raise OutputError(f"{path}: not a match saved by this package ({reason(error)})") from error
        return match


def expect_level(level: float) -> None:
    """Raise a ConfigurationError unless a level lies above 0.5 and below 1."""
    if not 0.5 < level < 1:
        raise ConfigurationError(f"level must be above 0.5 and below 1, not {level}")


def expect_valid_match(match: Match) -> None:
    """Raise a ValueError that says what is wrong with the effects and errors of a match."""
    for name, values in (("effect", match.effect), ("error", match.error)):
        if values.dtype != torch.float32 or values.ndim != 4 or len(set(values.shape)) != 1 or not values.numel():
            raise ValueError(f"its {name} is {values.dtype} of {list(values.shape)}, not float32 of four equal sides")
        if not values.isfinite().all():
            raise ValueError(f"its {name} is not finite")
    if match.effect.shape != match.error.shape or (match.error < 0).any():
        raise ValueError("its errors do not belong to its effects")
    for explanation in (match.a, match.b):
        calls = explanation.provenance.get("encoder_calls")
        if not isinstance(calls, int) or calls < 0:
            raise ValueError("its provenance does not say how many encoder calls were made")
