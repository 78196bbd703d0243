"""Maps in Zarr arrays [images, height, width], one a setting, a chunk an image: images are written singly.

Several processes may write at once: each makes an array that is missing, and what they make is the same to the byte.
The images are known by their numbers; what they are called lies beside the arrays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from repeat_xai.errors import OutputError, reason
from repeat_xai.types import Explanation

if TYPE_CHECKING:
    import zarr

KINDS = ("importance", "uncertainty", "vote_share")
TRIES = 5
"""At opening an array that another process is just making."""


@final
@dataclass(frozen=True)
class MapStore:
    """Explanations' maps by setting and number of the image; what was never written is NaN."""

    url: str | Path

    def write(self, about: dict[str, Any], images: Sequence[str], number: int, explanation: Explanation) -> None:
        """The maps of one of these images."""
        names = _digest("\n".join(images))
        for kind in KINDS:
            if (found := getattr(explanation, kind)) is not None:
                try:
                    array = self._array(about, images, kind, tuple(found.shape))
                    if array.attrs.get("images") != names:
                        raise ValueError("those there are of other images; keep these elsewhere")
                    array[number] = found.numpy()
                except (OSError, ValueError) as error:
                    raise OutputError(f"{self.url}: maps cannot be written ({reason(error)})") from error

    def read(self, about: dict[str, Any], number: int, kind: str) -> np.ndarray:
        """One map of one image."""
        import zarr

        try:
            array = zarr.open_array(self._place, path=f"{_name(about)}/{kind}", mode="r")
            return np.asarray(array[number])
        except FileNotFoundError as error:
            raise OutputError(f"{self.url}: holds no {kind} of that setting") from error
        except (OSError, ValueError, IndexError) as error:
            raise OutputError(f"{self.url}: {kind} of image {number} cannot be read ({reason(error)})") from error

    @property
    def _place(self) -> Path | str:
        """As Zarr wants it: a path on a disk, or a URL."""
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        if isinstance(self.url, Path):
            return self.url
        try:
            files, path = fsspec.core.url_to_fs(self.url)
        except (ValueError, ImportError) as error:
            raise OutputError(f"{self.url}: cannot be opened as a store ({reason(error)})") from error
        return Path(path) if isinstance(files, LocalFileSystem) else self.url

    def _array(self, about: dict[str, Any], images: Sequence[str], kind: str, size: tuple[int, ...]) -> zarr.Array[Any]:
        """Opened, or made."""
        import zarr
        from zarr.errors import ContainsArrayError, ContainsGroupError

        place, name = self._place, _name(about)
        for _ in range(TRIES):
            with suppress(FileNotFoundError, json.JSONDecodeError):
                return zarr.open_array(place, path=f"{name}/{kind}", mode="r+")
            with suppress(ContainsGroupError):
                zarr.create_group(place, path=name, attributes={"setting": about, "images": list(images)})
            with suppress(ContainsArrayError):
                zarr.create_array(
                    place,
                    name=f"{name}/{kind}",
                    shape=(len(images), *size),
                    chunks=(1, *size),
                    dtype="float32",
                    fill_value=np.nan,
                    attributes={"images": _digest("\n".join(images))},
                )
        raise OSError("another process keeps changing them")


def _name(about: dict[str, Any]) -> str:
    return _digest(json.dumps(about, sort_keys=True))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
