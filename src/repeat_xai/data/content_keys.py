"""Keys of images that include a digest of their content, so that a change is noticed even if size and time stay."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, final, overload

from repeat_xai.data.dataset import Dataset, Sample
from repeat_xai.errors import RepeatError
from repeat_xai.files.reading import open_regular

Check = Literal["time", "content"]
"""How a changed image is noticed: by the size and time of change of its file, or by its content."""


def with_content_keys(dataset: Dataset) -> Dataset:
    """Return the same dataset, with a digest of each image's content in its key."""
    return replace(dataset, keys=_ContentKeys(dataset))


@final
class _ContentKeys(Sequence[str]):
    """The keys of a dataset's images, each computed when it is first needed: most images are then never read."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._keys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._dataset)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[index] for index in range(len(self))[number]]
        if number not in self._keys:
            self._keys[number] = f"{self._dataset.keys[number]} (sha256 {_digest(self._dataset, number)})"
        return self._keys[number]


def _digest(dataset: Dataset, number: int) -> str:
    """Return the first digits of the SHA-256 of an image and its segmentation, or a dash if it cannot be read."""
    try:
        return _digest_of(dataset[number])
    except (RepeatError, OSError):
        return "-"  # the image's row will name the error


def _digest_of(sample: Sample) -> str:
    content = hashlib.sha256()
    if isinstance(sample.picture, Path):
        with open_regular(sample.picture) as file:
            while part := file.read(2**20):
                content.update(part)
    else:
        picture = sample.picture
        content.update(repr((picture.mode, picture.size)).encode() + picture.tobytes())
    if sample.segmentation is not None:
        content.update(sample.segmentation.tobytes())
    return content.hexdigest()[:16]
