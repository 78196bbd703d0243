"""A store of maps: one Zarr array [maps, height, width] for each row of results, named by the key of the row.

Several processes may write at once, because no two rows share an array. On a disk an array appears whole or not at all.
Maps are written before their row, so that a row whose maps are wanted is never stored without them.

Two checksums detect damage: one inside each compressed chunk, which every reader of Zarr checks, and one of everything
that is stored for the row, which also covers its attributes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from repeat_xai.errors import OutputError, reason
from repeat_xai.files.atomic import writing_folder
from repeat_xai.files.reading import expect_regular
from repeat_xai.types import MOST_PIXELS, Explanation
from repeat_xai.types.explanation import MAPS

ATTRIBUTES, CHUNK = "zarr.json", "c/0/0/0"
"""The two files of an array."""
SUBFOLDER_LETTERS = 2
"""Number of first letters of a row's key that name its subfolder: one folder with a million entries is slow."""


class NoMapsError(OutputError):
    """The store holds no maps of this row."""


class StoredMaps(NamedTuple):
    """The maps of one row, and the encoder calls and seconds that they took."""

    maps: dict[str, np.ndarray]
    """The maps by name: importance, uncertainty where the method has one, and the share of votes if it casts votes."""
    calls: int
    seconds: float


@final
@dataclass(frozen=True)
class MapStore:
    """A folder or URL that holds the maps of explanations by the keys of their rows."""

    url: str | Path
    writable: bool = True
    """Whether the maps of new explanations are added; if not, maps that are stored already are only read."""

    def absolute(self) -> MapStore:
        """Return the same store by a path that does not depend on the working folder."""
        return MapStore(self.url.absolute(), self.writable) if isinstance(self.url, Path) else self

    def write(self, key: str, image: str, explanation: Explanation, *, calls: int = 0, seconds: float = 0.0) -> None:
        """Store the maps of one row, replacing any that are stored."""
        maps = {kind: values.numpy() for kind, values in explanation.maps.items()}
        values = np.stack(list(maps.values()))
        attributes = {"maps": list(maps), "image": image, "encoder_calls": calls, "seconds": seconds}
        attributes["checksum"] = _checksum(key, attributes, values)
        root, place = self._place()
        try:
            if isinstance(root, Path):
                root.mkdir(parents=True, exist_ok=True)
                with writing_folder(root / _path(key), drafts=root) as draft:
                    _create(draft, None, values, attributes)
            else:
                _create(place, _path(key), values, attributes)
        except (OSError, ValueError) as error:
            raise OutputError(f"{self.url}: maps cannot be written ({reason(error)})") from error

    def read(self, key: str) -> StoredMaps:
        """Return the maps of one row; raise NoMapsError if there are none, or OutputError if they are damaged."""
        import zarr

        root, place = self._place()
        try:
            if root is not None:  # Zarr would wait for ever for the content of a FIFO
                expect_regular(root / _path(key) / ATTRIBUTES)
                expect_regular(root / _path(key) / CHUNK)
            array = zarr.open_array(place, path=_path(key), mode="r")
            attributes: dict[str, Any] = dict(array.attrs)
            kinds, calls, seconds = (attributes[name] for name in ("maps", "encoder_calls", "seconds"))
            if (
                kinds[:1] != list(MAPS[:1])
                or kinds != [kind for kind in MAPS if kind in kinds]
                or array.shape != array.chunks
                or array.dtype != np.float32
            ):
                raise ValueError("the array is not one that this package writes")
            count, height, width = array.shape
            if count != len(kinds) or not 0 < height * width <= MOST_PIXELS:
                raise ValueError(f"the array has the shape {list(array.shape)}")
            values = np.asarray(array)
            if attributes["checksum"] != _checksum(key, attributes, values):
                raise ValueError("the checksum is wrong")
        except FileNotFoundError as error:
            raise NoMapsError(f"{self.url}: holds no maps of row {key}") from error
        except Exception as error:  # Zarr and its codecs raise errors of every kind at damaged arrays
            raise OutputError(f"{self.url}: maps of row {key} are damaged ({reason(error)})") from error
        return StoredMaps(dict(zip(kinds, values, strict=True)), int(calls), float(seconds))

    def _place(self) -> tuple[Path | None, Path | str]:
        """Return the store's folder, None if it is not on a disk, and the path or URL that Zarr opens."""
        import fsspec
        from fsspec.implementations.local import LocalFileSystem

        if isinstance(self.url, Path):
            return self.url.absolute(), self.url.absolute()
        try:
            files, path = fsspec.core.url_to_fs(self.url)
        except (ValueError, ImportError) as error:
            raise OutputError(f"{self.url}: cannot be opened as a store ({reason(error)})") from error
        return (Path(path), Path(path)) if isinstance(files, LocalFileSystem) else (None, self.url)


def _create(place: Path | str, path: str | None, values: np.ndarray, attributes: Mapping[str, Any]) -> None:
    """Write an array of one chunk, with a checksum after its compressed bytes."""
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    zarr.create_array(
        place,
        name=path,
        data=values,
        chunks=values.shape,
        compressors=[ZstdCodec(), Crc32cCodec()],
        attributes=dict(attributes),
        overwrite=True,
        config={"write_empty_chunks": True},
    )


def _checksum(key: str, attributes: Mapping[str, Any], values: np.ndarray) -> str:
    """Return a checksum of everything that is stored for a row."""
    described = json.dumps(
        [
            key,
            [attributes.get(name) for name in ("maps", "image", "encoder_calls", "seconds")],
            values.dtype.str,
            values.shape,
        ]
    )
    return f"{zlib.crc32(np.ascontiguousarray(values).tobytes(), zlib.crc32(described.encode())):08x}"


def _path(key: str) -> str:
    """Return the path of a row's array inside the store."""
    return f"{key[:SUBFOLDER_LETTERS]}/{key}"
