"""A metric with what a reader must know to read its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Maps = Float[Tensor, "*images height width"]
    Masks = Bool[Tensor, "*images height width"]
    Scores = Float[Tensor, "*images"]

Direction = Literal["higher", "lower", "neither"]
Needs = Literal["maps", "masks"]


@final
@dataclass(frozen=True, kw_only=True)
class Metric:
    """Maps, and masks where it needs them, to a number each."""

    name: str
    better: Direction
    needs: Needs
    citation: str
    section: str
    """Where the paper uses it; empty where it does not."""
    function: Callable[..., Any] = field(repr=False)

    def __call__(self, maps: Maps, masks: Masks | None = None) -> Scores:
        """The function with its defaults."""
        if self.needs == "maps":
            found: Tensor = self.function(maps)
        elif masks is None:
            raise ConfigurationError(f"{self.name} needs masks of what is to be found")
        else:
            found = self.function(maps, masks)
        return found


def flat(maps: Maps) -> Float[Tensor, "*images pixels"]:
    """A row a map, in float64 on the host; NaN and infinity are refused."""
    if not isinstance(maps, Tensor) or maps.ndim < 2 or not maps.shape[-1] * maps.shape[-2]:
        shape = list(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise ConfigurationError(f"maps are a tensor [..., height, width], not {shape}")
    if not maps.isfinite().all():
        raise ConfigurationError("a map has NaN or infinite values and cannot be judged")
    return maps.detach().cpu().double().flatten(-2)


def ordered(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """Each row from its least to its largest, by numpy, whose sorting is many times quicker than torch's."""
    return torch.from_numpy(np.sort(values.numpy(), -1))


def inside(maps: Maps, masks: Masks) -> tuple[Float[Tensor, "*images pixels"], Bool[Tensor, "*images pixels"]]:
    """Maps and masks, a row each."""
    if not isinstance(masks, Tensor) or masks.dtype != torch.bool or masks.shape != maps.shape:
        found = f"{masks.dtype} {list(masks.shape)}" if isinstance(masks, Tensor) else type(masks).__name__
        raise ConfigurationError(f"masks must be bool {list(maps.shape)} as the maps are, not {found}")
    return flat(maps), masks.cpu().flatten(-2)


def boxed(boxes: list[tuple[float, float, float, float]], height: int, width: int) -> Bool[Tensor, "height width"]:
    """Boxes (left, top, right, bottom) in pixels → the mask of all of them.

    >>> boxed([(1.0, 0.0, 3.0, 1.0)], height=2, width=4).int().tolist()
    [[0, 1, 1, 0], [0, 0, 0, 0]]
    """
    mask = torch.zeros(height, width, dtype=torch.bool)
    for left, top, right, bottom in boxes:
        mask[max(0, round(top)) : max(0, round(bottom)), max(0, round(left)) : max(0, round(right))] = True
    return mask
