"""The result of a method: maps of importance and uncertainty, and a record of how they were made."""

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
from repeat_xai.files.arrays import ArrayKind, read_arrays
from repeat_xai.files.atomic import writing
from repeat_xai.files.reading import json_object
from repeat_xai.types.photo import MOST_SIDE, Photo

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int8
    from matplotlib.figure import Figure

    Map = Float[Tensor, "height width"]

LITTLE_MOVEMENT = 0.02
"""Mean of 1 − cosine below which the code hardly moves: photos move trained encoders by 0.1 to 0.4."""
LITTLE_CONTRAST = 0.02
"""Standard deviation of normalised pixels below which a photo is nearly a single colour; photos have 0.5 to 1.5."""
ROUNDING = 1e-6
"""Largest rounding error of a share of votes in float32."""
MOST_PIXELS = MOST_SIDE * MOST_SIDE
"""Largest number of pixels of a map, or of the picture beside it, in a file."""
LONGEST_SIDE = 2**31 - 1
"""Longest side of a photo, in pixels: no image format allows a longer one."""
TEXT = ArrayKind(("<U",), dimensions=0, max_bytes=2**22)
MAP = ArrayKind(("<f4",), dimensions=2, max_bytes=4 * MOST_PIXELS)
MAPS = ("importance", "uncertainty", "vote_share", "effect")
"""Names of the maps of an explanation."""
SAVED = dict.fromkeys(MAPS, MAP) | {
    "picture": ArrayKind(("|u1",), dimensions=3, max_bytes=3 * MOST_PIXELS),
    "photo": TEXT,
    "provenance": TEXT,
}
"""Arrays in the file of an explanation. Maps that the method does not have are left out."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Which pixels an encoder's representation of an image depends on, and how sure the method is of each.

    All maps are float32 tensors [height, width] on the CPU, and cover the part of the photo that the encoder sees.
    `map_to_photo(explanation.importance, explanation.photo)` brings one to the size of the whole photo.

    Every method returns an Explanation. What the numbers mean depends on the method: compare maps of one method with
    each other, not maps of different methods. A high importance says that the code depends on the pixel; it does not
    say what the pixel shows, nor that it is correct to depend on it.
    """

    importance: Map = field(repr=False)
    """Importance of each pixel. REPEAT: the share p of repeats that call the pixel important, in [0, 1], where by
    default a vote is weighted by the pixel's importance in that repeat. RELAX: the mean similarity of the masked copies
    that keep the pixel to the target, by default the whole image."""
    uncertainty: Map | None = field(repr=False)
    """Uncertainty of each pixel, at least 0; None for a method that does not measure it. REPEAT: p(1 − p), from 0 to
    0.25. RELAX: the variance of the similarities. Spread: the standard deviation over passes."""
    vote_share: Map | None = field(repr=False)
    """Share of repeats that call the pixel important, in [0, 1], each counted alike; None for a method that casts no
    votes. `verdict` is made from it."""
    effect: Map | None = field(default=None, repr=False)
    """How much higher the similarity to the target is on average when the pixel is kept than overall, in the units of
    the similarity. It is below zero where the pixel speaks against the target. None where the image is compared with
    itself, and for a method that is not over RELAX."""
    photo: Photo
    """The photo that is explained, and the box of it that the maps cover."""
    provenance: Mapping[str, Any] = field(repr=False)
    """Record of how the maps were made, as plain JSON: method with all its settings, encoder, preprocessing, seed,
    versions, device, time and number of encoder calls. The same method, encoder, image and seed give the same maps."""

    @property
    def code_movement(self) -> float | None:
        """How far masking moves the code: the mean of 1 − cosine over masked copies; None where it was not measured."""
        movement = self.provenance.get("ran", {}).get("code_movement")
        return movement if isinstance(movement, float) else None

    @property
    def hardly_moves(self) -> bool:
        """Whether masking hardly moves the code, so that the maps may show little more than the masks themselves."""
        return self.code_movement is not None and self.code_movement < LITTLE_MOVEMENT

    @property
    def is_of_flat_photo(self) -> bool:
        """Whether the encoder's input is nearly a single colour, so that the masks are the only structure in it."""
        contrast = self.provenance.get("photo", {}).get("contrast")
        return isinstance(contrast, float) and contrast < LITTLE_CONTRAST

    @property
    def maps(self) -> dict[str, Map]:
        """The maps by name: `importance`, and `uncertainty`, `vote_share` and `effect` if the explanation has them."""
        maps = {kind: getattr(self, kind) for kind in MAPS}
        return {kind: values for kind, values in maps.items() if values is not None}

    def verdict(self, level: float = 0.95) -> Int8[Tensor, "height width"]:
        """Return +1 for certainly important pixels, −1 for certainly unimportant ones, and 0 for undecided ones.

        A pixel is certainly important if at least a share `level` of the repeats call it important, and certainly
        unimportant if at most 1 − `level` do. `level` lies above 0.5 and is at most 1.
        """
        if self.vote_share is None:
            raise ConfigurationError("this method casts no votes, so it gives no verdict; use Repeat")
        if not 0.5 < level <= 1:
            raise ConfigurationError(f"level must be above 0.5 and at most 1, not {level}")
        important = self.vote_share >= level - ROUNDING
        unimportant = self.vote_share <= 1 - level + ROUNDING
        return important.to(torch.int8) - unimportant.to(torch.int8)

    @property
    def required_uncertainty(self) -> Map:
        """The uncertainty; refused for a method that does not measure it."""
        if self.uncertainty is None:
            raise ConfigurationError("this method does not measure its uncertainty; use Repeat, Relax or Spread")
        return self.uncertainty

    def certain_half(self) -> Bool[Tensor, "height width"]:
        """Return which pixels have an uncertainty of at most the median of the map: the more certain half of them."""
        return self.required_uncertainty <= self.required_uncertainty.median()

    def certain_importance(self) -> Map:
        """Return importance with the less certain half of the pixels set to zero.

        Pixels whose uncertainty is at most the median of the map are kept. This is U-RELAX if the method is RELAX.
        """
        return self.importance * self.certain_half()

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
        """Write the maps, the photo and the provenance to one `.npz` file.

        The file appears whole or not at all. It holds no code, and numpy alone can read it.
        """
        try:
            arrays = arrays_of(self)
        except (TypeError, ValueError, RecursionError) as error:
            raise OutputError(f"{path}: cannot be saved ({reason(error)})") from error
        with writing(Path(path)) as draft, draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @staticmethod
    def load(path: str | Path) -> Explanation:
        """Read an explanation that `save` has written.

        Any other file raises an OutputError, before it takes much memory or time.
        """
        try:
            explanation = from_arrays(read_arrays(Path(path), SAVED))
        except FileNotFoundError as error:
            raise OutputError(f"{path}: no such file") from error
        except OutputError:
            raise
        except Exception as error:  # libraries raise errors of many classes for damaged files
            why = reason(error)
            raise OutputError(f"{path}: not an explanation saved by this package ({why})") from error
        return explanation

    def _repr_html_(self) -> str:
        from repeat_xai.output.page import frame

        return frame(self)

    def _repr_png_(self) -> bytes:
        from repeat_xai.output.page import picture

        return picture(self)


def arrays_of(explanation: Explanation) -> dict[str, np.ndarray]:
    """Return the arrays that a file holds of a valid explanation; refuse an invalid one, mostly by a ValueError."""
    expect_valid(explanation)
    arrays = {
        **{kind: values.numpy() for kind, values in explanation.maps.items()},
        "picture": explanation.photo.picture,
        "photo": np.array(json.dumps({k: v for k, v in vars(explanation.photo).items() if k != "picture"})),
        "provenance": np.array(json.dumps(explanation.provenance)),
    }
    json_object(str(arrays["provenance"]))
    return arrays


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Explanation:
    """Return the explanation that a file's arrays hold; wrong or missing ones raise an error of any class."""
    about = json_object(str(arrays["photo"]))
    maps = {kind: torch.from_numpy(arrays[kind]) for kind in MAPS if kind in arrays}
    explanation = Explanation(
        importance=maps["importance"],
        uncertainty=maps.get("uncertainty"),
        vote_share=maps.get("vote_share"),
        effect=maps.get("effect"),
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
    return explanation


def expect_valid(explanation: Explanation) -> None:
    """Raise a ValueError that says what is wrong with an explanation, unless it can be saved, shown and read back.

    Maps are float32 of one shape. Importance and effect are finite and may have any sign. A share of votes lies in
    [0, 1], up to rounding. Uncertainty is not below zero, up to rounding, and follows from votes, so no map of votes is
    without it.
    """
    importance, uncertainty, share = explanation.importance, explanation.uncertainty, explanation.vote_share
    for values in explanation.maps.values():
        if values.dtype != torch.float32 or values.ndim != 2 or not 0 < values.numel() <= MOST_PIXELS:
            raise ValueError(f"a map is {values.dtype} of {list(values.shape)}, not float32 [height, width]")
        if values.shape != importance.shape:
            raise ValueError(f"maps have different shapes, {list(importance.shape)} and {list(values.shape)}")
    if not importance.isfinite().all():
        raise ValueError("importance is not finite")
    if explanation.effect is not None and not explanation.effect.isfinite().all():
        raise ValueError("effect is not finite")
    if uncertainty is not None and not (uncertainty.isfinite() & (uncertainty >= -ROUNDING)).all():
        raise ValueError("uncertainty is not finite or below zero")
    if share is not None and uncertainty is None:
        raise ValueError("there is a share of votes but no uncertainty")
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
    """Raise a ValueError unless a provenance names what every caption shows: a method, an encoder, a budget."""
    method = made.get("method")
    base = method.get("base", "") if isinstance(method, Mapping) else ""
    if not (_named(method) and _named(made.get("encoder")) and (isinstance(base, str) or _named(base))):
        raise ValueError("its provenance does not name a method and an encoder")
    for part in ("ran", "photo"):
        if not isinstance(made.get(part, {}), Mapping):
            raise ValueError(f"its provenance has no record under {part!r}")
    if "budget" in made and not (isinstance(made["budget"], Mapping) and "masks" in made["budget"]):
        raise ValueError("its provenance does not say how many masks were used")


def _named(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)
