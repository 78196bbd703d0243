"""A dataset: pictures by number, each with where its objects are and what they are, where that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import PIL.Image

from repeat_xai.errors import ConfigurationError, ImageError, RepeatError, at_least, reason
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Bool


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One picture of a dataset."""

    picture: PIL.Image.Image | Path
    mask: Bool[np.ndarray, "rows columns"] | None = None
    """Where its objects are."""
    label: int | None = None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Pictures by number."""

    name: str
    keys: Sequence[str] = field(repr=False)
    """What each picture is called; of what may change, with what tells that it has."""
    load: Callable[[int], Sample] = field(repr=False)
    drawn_as: str | None = None
    """Whose lots its images are drawn by, if not its own: a poisoned dataset has the same images as the clean one."""

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, number: int) -> Sample:
        try:
            return self.load(number)
        except RepeatError:
            raise
        except Exception as error:  # Pillow has a kind for every way in which a file can be spoilt
            raise ImageError(f"{self.keys[number]}: cannot be read ({reason(error)})") from error

    @property
    def masked(self) -> bool:
        """Whether it is known where the objects are in the first picture that can be read."""
        for number in range(len(self)):
            with suppress(ImageError):
                return self[number].mask is not None
        return False

    def drawn(self, images: int | None, *, seed: int) -> list[int]:
        """The numbers of some pictures drawn at random, in the order drawn: the first of more are those of fewer."""
        if images is None:
            return list(range(len(self)))
        at_least("images", images, 1)
        if images > len(self):
            raise ConfigurationError(f"{self.name} has {len(self)} images, not {images}")
        lots = uniforms(fold(seed, "sample", Path(self.drawn_as or self.name).name), start=0, stop=len(self), width=1)[
            :, 0
        ]
        return [int(number) for number in np.argsort(lots, kind="stable")[:images]]
