"""Pictures that are known by their content, so that one that changes is noticed even if its time and size stay."""

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
"""How a changed picture is noticed: by the size and time of change of its file, or by its content."""


def by_content(dataset: Dataset) -> Dataset:
    """Return the same pictures, each with a digest of its content in its key."""
    return replace(dataset, keys=_ContentKeys(dataset))


@final
class _ContentKeys(Sequence[str]):
    """The keys of a dataset's pictures. A picture is read when its key is first needed, so most are never read."""

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
            return [self[each] for each in range(len(self))[number]]
        if number not in self._keys:
            self._keys[number] = f"{self._dataset.keys[number]} (sha256 {_digest(self._dataset, number)})"
        return self._keys[number]


def _digest(dataset: Dataset, number: int) -> str:
    """Return the beginning of the SHA-256 of a picture and its mask, or a dash if it cannot be read."""
    try:
        return _digest_of(dataset[number])
    except (RepeatError, OSError):
        return "-"  # its row will say why


def _digest_of(sample: Sample) -> str:
    content = hashlib.sha256()
    if isinstance(sample.picture, Path):
        with open_regular(sample.picture) as file:
            while part := file.read(2**20):
                content.update(part)
    else:
        picture = sample.picture
        content.update(repr((picture.mode, picture.size)).encode() + picture.tobytes())
    if sample.mask is not None:
        content.update(sample.mask.tobytes())
    return content.hexdigest()[:16]
