"""Maps in Zarr arrays [maps, height, width], one a row and named as the row is.

Several processes may write at once: no two rows share an array. Maps are written before their row is told of.
"""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from repeat_xai.errors import OutputError, reason
from repeat_xai.types import Explanation

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from repeat_xai.types import Map

KINDS = ("importance", "uncertainty", "vote_share")
CHUNK = "c/0/0/0"
"""Where an array's only chunk lies."""
SHELF = 2
"""Letters of a row's name that its maps are shelved by: a folder of a million others is slow."""


@final
@dataclass(frozen=True)
class MapStore:
    """Explanations' maps by the names of their rows."""

    url: str | Path

    def absolute(self) -> MapStore:
        """The same from any working folder."""
        return MapStore(self.url.absolute()) if isinstance(self.url, Path) else self

    def write(self, key: str, image: str, explanation: Explanation) -> None:
        """The maps of one row."""
        import zarr

        found: dict[str, Map | None] = {kind: getattr(explanation, kind) for kind in KINDS}
        maps = {kind: values.numpy() for kind, values in found.items() if values is not None}
        about: dict[str, Any] = {"maps": list(maps), "image": image}
        try:
            stack = np.stack(list(maps.values()))
            zarr.create_array(
                self._place,
                name=_path(key),
                data=stack,
                chunks=stack.shape,
                attributes=about,
                overwrite=True,
                config={"write_empty_chunks": True},
            )
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.url}: maps cannot be written ({reason(error)})") from error

    def read(self, key: str) -> dict[str, np.ndarray]:
        """The maps of one row, by what they are of."""
        import zarr

        try:
            array = zarr.open_array(self._place, path=_path(key), mode="r")
            kinds = array.attrs["maps"]
            assert isinstance(kinds, list)
            return dict(zip(map(str, kinds), np.asarray(array), strict=True))
        except FileNotFoundError as error:
            raise OutputError(f"{self.url}: holds no maps of row {key}") from error
        except (OSError, ValueError, KeyError) as error:
            raise OutputError(f"{self.url}: maps of row {key} cannot be read ({reason(error)})") from error

    def keys(self) -> set[str]:
        """Names of the rows whose maps are here; Zarr writes what an array is before what is in it."""
        files, path = self._files()
        try:
            return {Path(str(found)).parts[-5] for found in files.glob(f"{escape(path)}/*/*/{CHUNK}")}
        except OSError as error:
            raise OutputError(f"{self.url}: cannot be read ({reason(error)})") from error

    @property
    def _place(self) -> Path | str:
        """As Zarr wants it: a path on a disk, or a URL."""
        from fsspec.implementations.local import LocalFileSystem

        files, path = self._files()
        return Path(path) if isinstance(files, LocalFileSystem) else str(self.url)

    def _files(self) -> tuple[AbstractFileSystem, str]:
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        if isinstance(self.url, Path):
            return LocalFileSystem(), self.url.absolute().as_posix()
        try:
            files, path = fsspec.core.url_to_fs(self.url)
        except (ValueError, ImportError) as error:
            raise OutputError(f"{self.url}: cannot be opened as a store ({reason(error)})") from error
        return files, path


def _path(key: str) -> str:
    return f"{key[:SHELF]}/{key}"
