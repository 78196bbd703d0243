"""The classes of a dataset: its images by number, each with the pixels of its objects and its label where known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

import numpy as np
import PIL.Image

from repeat_xai.errors import ConfigurationError, ImageError, RepeatError, at_least, reason
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Bool


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One image of a dataset, with what the dataset knows about it."""

    picture: PIL.Image.Image | Path
    """The image, or the path of its file."""
    segmentation: Bool[np.ndarray, "rows columns"] | None = None
    """True at the pixels of its objects; None if the dataset does not have them."""
    label: int | None = None
    """Number of its class; None if the dataset does not have classes."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Images by number: `dataset[3]` loads the fourth one."""

    name: str
    """Name by which the dataset was opened, or the full path of its folder."""
    keys: Sequence[str] = field(repr=False)
    """Name of each image. Where an image may change, its key also holds what shows a change: size, time or digest."""
    load: Callable[[int], Sample] = field(repr=False)
    """Function that loads the image of a number."""
    same_images_as: str | None = None
    """Name of a dataset with the same images in the same order, if there is one: `draw` then draws the same numbers
    from both. A poisoned dataset has the images of the clean one."""
    left_out: str = ""
    """A line that says which files of its folder are no images of the dataset; empty if there are none."""

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, number: int) -> Sample:
        try:
            return self.load(number)
        except RepeatError:
            raise
        except Exception as error:  # Pillow raises errors of many classes for damaged files
            raise ImageError(f"{self.keys[number]}: cannot be read ({reason(error)})") from error

    @property
    def has_segmentations(self) -> bool:
        """Whether the first image that can be read comes with the pixels of its objects."""
        for number in range(len(self)):
            with suppress(ImageError):
                return self[number].segmentation is not None
        return False

    def draw(self, images: int | None, *, seed: int) -> list[int]:
        """Draw the numbers of some images at random; return all numbers if `images` is None.

        With the same seed, a smaller draw is the beginning of a larger one.
        """
        if images is None:
            return list(range(len(self)))
        at_least("images", images, 1)
        if images > len(self):
            raise ConfigurationError(f"{self.name} has {len(self)} images, not {images}")
        # Only the last part of a path counts, so that a folder moved elsewhere draws the same images. The word
        # "sample" is part of the seed and must stay, else all draws change.
        stream = fold(seed, "sample", Path(self.same_images_as or self.name).name)
        ranks = uniforms(stream, start=0, stop=len(self), width=1)[:, 0]
        return [int(number) for number in np.argsort(ranks, kind="stable")[:images]]


@runtime_checkable
class OpenDataset(Protocol):
    """A function that opens a dataset whose files are under `root`, after downloading them there if `download`."""

    def __call__(self, root: Path, *, download: bool) -> Dataset: ...


@final
@dataclass(frozen=True, kw_only=True)
class NamedDataset:
    """An entry of the registry `DATASETS`: how a dataset is opened, listed and captioned."""

    title: str
    """Name in the captions of figures, for example `PASCAL VOC`."""
    description: str
    """A description of its images in one line, shown by `repeat-xai list datasets`."""
    open: OpenDataset
