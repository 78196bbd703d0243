"""What a method says of an image: its maps, and how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, OutputError, reason
from repeat_xai.files.arrays import Kind, read_arrays
from repeat_xai.files.atomic import json_object, writing
from repeat_xai.types.images import MOST_SIDE, Photo

if TYPE_CHECKING:
    from jaxtyping import Float, Int8
    from matplotlib.figure import Figure

    Map = Float[Tensor, "height width"]

ROUNDING = 1e-6
"""A share of votes held in float32 may miss its true value by this much."""
MOST_PIXELS = MOST_SIDE * MOST_SIDE
"""Of a map, or of the picture beside it, that is saved."""
LONGEST_SIDE = 2**31 - 1
"""Pixels of a photo: no format of pictures knows of longer sides."""
TEXT = Kind(("<U",), dimensions=0, most=2**22)
MAP = Kind(("<f4",), dimensions=2, most=4 * MOST_PIXELS)
MAPS = ("importance", "uncertainty", "vote_share")
"""Names of the maps of an explanation."""
SAVED = dict.fromkeys(MAPS, MAP) | {
    "picture": Kind(("|u1",), dimensions=3, most=3 * MOST_PIXELS),
    "photo": TEXT,
    "provenance": TEXT,
}
"""What the file of an explanation holds; there is no share of votes of a method that casts none."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Importance and uncertainty of every pixel the encoder sees, and how they were made."""

    importance: Map = field(repr=False)
    uncertainty: Map | None = field(repr=False)
    """None for a method that does not measure it."""
    vote_share: Map | None = field(repr=False)
    """Share of repeats that call the pixel important, unweighted; None for a method that casts no votes."""
    photo: Photo
    provenance: Mapping[str, Any] = field(repr=False)

    @property
    def maps(self) -> dict[str, Map]:
        """The maps there are, by name: importance, and uncertainty and the share of votes where the method has them."""
        maps = {"importance": self.importance, "uncertainty": self.uncertainty, "vote_share": self.vote_share}
        return {kind: values for kind, values in maps.items() if values is not None}

    def verdict(self, level: float = 0.95) -> Int8[Tensor, "height width"]:
        """+1 where at least `level` of the votes call the pixel important, −1 where at most 1 − `level` do, else 0."""
        if self.vote_share is None:
            raise ConfigurationError("this method casts no votes, so it gives no verdict; use Repeat")
        if not 0.5 < level <= 1:
            raise ConfigurationError(f"level must be above 0.5 and at most 1, not {level}")
        important = self.vote_share >= level - ROUNDING
        unimportant = self.vote_share <= 1 - level + ROUNDING
        return important.to(torch.int8) - unimportant.to(torch.int8)

    def certain_importance(self) -> Map:
        """Importance where uncertainty is at most its median, zero elsewhere: U-RELAX when the method is RELAX."""
        if self.uncertainty is None:
            raise ConfigurationError("this method does not measure its uncertainty; use Repeat, Relax or Spread")
        return self.importance * (self.uncertainty <= self.uncertainty.median())

    def plot(self, path: str | Path | None = None, *, level: float = 0.95) -> Figure:
        """Draw photo, importance, uncertainty and verdict side by side, and return the figure.

        `path` also writes it to a file, whose suffix says in which format: .png, .pdf or .svg. `level` is the share of
        votes that makes a verdict certain.
        """
        from repeat_xai.output.figures import panel, save_figure

        figure = panel(self, level=level)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save(self, path: str | Path) -> None:
        """Write everything to one `.npz` that holds no code and needs none to be read."""
        try:
            expect_valid(self)
            arrays = {
                **{kind: values.numpy() for kind, values in self.maps.items()},
                "picture": self.photo.picture,
                "photo": np.array(json.dumps({k: v for k, v in vars(self.photo).items() if k != "picture"})),
                "provenance": np.array(json.dumps(self.provenance)),
            }
            json_object(str(arrays["provenance"]))
        except (TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"{path}: cannot be saved ({reason(error)})") from error
        with writing(Path(path)) as draft, draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @staticmethod
    def load(path: str | Path) -> Explanation:
        """Read back what `save` wrote; anything else is refused before it takes much memory or time."""
        try:
            arrays = read_arrays(Path(path), SAVED)
            about = json_object(str(arrays["photo"]))
            maps = {kind: torch.from_numpy(arrays[kind]) for kind in MAPS if kind in arrays}
            explanation = Explanation(
                importance=maps["importance"],
                uncertainty=maps.get("uncertainty"),
                vote_share=maps.get("vote_share"),
                photo=Photo(
                    name=about["name"],
                    picture=arrays["picture"],
                    size=tuple(about["size"]),
                    box=tuple(about["box"]),
                    digest=about["digest"],
                ),
                provenance=json_object(str(arrays["provenance"])),
            )
            expect_valid(explanation)
        except FileNotFoundError as error:
            raise OutputError(f"{path}: no such file") from error
        except OutputError:
            raise
        except Exception as error:  # libraries meet damaged files with errors of every kind
            why = reason(error)
            raise OutputError(f"{path}: not an explanation saved by this package ({why})") from error
        return explanation

    def _repr_html_(self) -> str:
        from repeat_xai.output.page import frame

        return frame(self)

    def _repr_png_(self) -> bytes:
        from repeat_xai.output.page import picture

        return picture(self)


def expect_valid(explanation: Explanation) -> None:
    """Raise a ValueError that says what is wrong with an explanation, unless it can be saved, shown and read back.

    Maps are float32 of one shape. Importance is finite and may have any sign. A share of votes lies in [0, 1], up to
    rounding. Uncertainty is not below zero, up to rounding.
    """
    importance, uncertainty, share = explanation.importance, explanation.uncertainty, explanation.vote_share
    for values in explanation.maps.values():
        if values.dtype != torch.float32 or values.ndim != 2 or not 0 < values.numel() <= MOST_PIXELS:
            raise ValueError(f"a map is {values.dtype} of {list(values.shape)}, not float32 [height, width]")
        if values.shape != importance.shape:
            raise ValueError(f"maps have different shapes, {list(importance.shape)} and {list(values.shape)}")
    if not importance.isfinite().all():
        raise ValueError("importance is not finite")
    if uncertainty is not None and not (uncertainty.isfinite() & (uncertainty >= -ROUNDING)).all():
        raise ValueError("uncertainty is not finite or below zero")
    if share is not None and not ((share >= -ROUNDING) & (share <= 1 + ROUNDING)).all():
        raise ValueError("a share of votes is not in [0, 1]")
    _expect_valid_photo(explanation.photo)
    _expect_valid_provenance(explanation.provenance)


def _expect_valid_photo(photo: Photo) -> None:
    picture, sides = photo.picture, [type(side) for side in photo.size]
    if (
        sides != [int, int]
        or len(photo.box) != 4
        or not isinstance(photo.name, str)
        or not isinstance(photo.digest, str)
    ):
        raise ValueError("its photo is not described by a name, a size, a box and a digest")
    if picture.dtype != np.uint8 or picture.shape[2:] != (3,) or not 0 < picture.size <= 3 * MOST_PIXELS:
        raise ValueError(f"its picture is {picture.dtype} of {list(picture.shape)}, not uint8 [rows, columns, 3]")
    (height, width), (rows, columns, _), (left, top, right, bottom) = photo.size, picture.shape, photo.box
    smaller = rows <= height <= LONGEST_SIDE and columns <= width <= LONGEST_SIDE
    if not smaller or abs(rows * width - columns * height) > width + height:  # sides are rounded to whole pixels
        raise ValueError(f"a picture of {columns}×{rows} pixels is not of a photo of {width}×{height}")
    beyond = ROUNDING * max(width, height)
    if not (-beyond <= left < right <= width + beyond and -beyond <= top < bottom <= height + beyond):
        raise ValueError(f"the box {photo.box} is not in a photo of {width}×{height} pixels")


def _expect_valid_provenance(made: Mapping[str, Any]) -> None:
    """Require what every caption says of an explanation."""
    method = made.get("method")
    base = method.get("base", "") if isinstance(method, Mapping) else ""
    if not (_named(method) and _named(made.get("encoder")) and (isinstance(base, str) or _named(base))):
        raise ValueError("its provenance does not name a method and an encoder")
    if "budget" in made and not (isinstance(made["budget"], Mapping) and "masks" in made["budget"]):
        raise ValueError("its provenance does not say how many masks were used")


def _named(thing: object) -> bool:
    return isinstance(thing, Mapping) and isinstance(thing.get("name"), str)
