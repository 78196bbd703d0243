"""Maps in Zarr arrays [images, height, width], one a setting, a chunk an image: images are written singly."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from repeat_xai.errors import OutputError, reason
from repeat_xai.types import Explanation

if TYPE_CHECKING:
    import zarr

KINDS = ("importance", "uncertainty", "vote_share")


@final
@dataclass(frozen=True)
class MapStore:
    """Explanations' maps by setting and number of the image; what was never written is NaN."""

    url: str | Path

    def write(self, about: dict[str, Any], number: int, images: int, explanation: Explanation) -> None:
        """The maps of one image."""
        for kind in KINDS:
            if (found := getattr(explanation, kind)) is not None:
                try:
                    self._array(about, kind, (images, *found.shape))[number] = found.numpy()
                except OSError as error:
                    raise OutputError(f"{self.url}: maps cannot be written ({reason(error)})") from error

    def read(self, about: dict[str, Any], number: int, kind: str) -> np.ndarray:
        """One map of one image."""
        import zarr

        try:
            array = zarr.open_array(str(self.url), path=f"{_name(about)}/{kind}", mode="r")
        except (KeyError, FileNotFoundError) as error:
            raise OutputError(f"{self.url}: holds no {kind} of that setting") from error
        return np.asarray(array[number])

    def _array(self, about: dict[str, Any], kind: str, shape: tuple[int, ...]) -> zarr.Array[Any]:
        import zarr

        at = f"{_name(about)}/{kind}"
        try:
            return zarr.open_array(str(self.url), path=at, mode="r+")
        except FileNotFoundError:
            group = zarr.open_group(str(self.url), mode="a")
            chunk = (1, *shape[1:])
            return group.create_array(
                at, shape=shape, chunks=chunk, dtype="float32", fill_value=np.nan, attributes={"setting": about}
            )


def _name(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
