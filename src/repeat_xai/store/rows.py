"""Rows in Parquet files that are written once, whole, and never changed: a folder of them is a store.

A run writes files of its own, so that runs side by side, or killed, can spoil nothing: what is there is whole. Files of
about the same size are merged when there are many, the merged one written before its parts are taken away; a row found
twice counts once, and one with numbers before a failure. The folder may be on a disk, or be any URL that fsspec knows.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, final

from repeat_xai.errors import OutputError
from repeat_xai.store.folder import Folder, GoneError
from repeat_xai.store.row import Row
from repeat_xai.store.schema import content, packed, parts, unpacked

if TYPE_CHECKING:
    import pyarrow as pa

LARGE = 16 * 2**20
"""Bytes of a file that is merged no more."""
HELD = 256 * 2**20
"""Bytes of rows that merging holds in memory."""
MANY = 16
"""Files of about the same size from which merging pays."""
PAUSES = (0.1, 0.5, 1, 2, 5, 10, 20)
"""Seconds to wait for a file that is listed and not there: a network's listing may be a minute old."""


@final
class Store:
    """A folder of rows."""

    def __init__(self, url: str | Path) -> None:
        self.url = str(url)
        self._folder = Folder(url)

    def add(self, rows: Collection[Row]) -> None:
        """Write rows: all of them, or in case of a failure none."""
        if rows:
            self._folder.write(packed(rows))

    def done(self) -> set[str]:
        """The keys of rows with numbers."""
        found: set[str] = set()
        for part in self._parts(["key", "failure"]):
            pairs = zip(part["key"].to_pylist(), part["failure"].to_pylist(), strict=True)
            found.update(key for key, failure in pairs if failure is None)
        return found

    def rows(self, keys: Collection[str] | None = None) -> dict[str, Row]:
        """The rows of these keys, or all."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, Row] = {}
        wanted = None if keys is None else pa.array(list(keys), pa.string())
        for part in self._parts(None):
            for row in unpacked(part if wanted is None else part.filter(pc.is_in(part["key"], wanted))):
                if row.key not in found or found[row.key].failure is not None:
                    found[row.key] = row
        return found

    def merge(self, *, at_least: int = MANY) -> None:
        """Make one file of those of about the same size, where there are so many."""
        alike: dict[int, list[str]] = defaultdict(list)
        for name, size in self._folder.sizes().items():
            if size < LARGE:
                alike[int(math.log(max(size, 1), MANY))].append(name)
        for names in alike.values():
            if len(names) >= max(2, at_least):
                self._merge(names)

    def _merge(self, names: Iterable[str]) -> None:
        """As many files as are to be held in memory at once become one."""
        held: dict[str, list[pa.RecordBatch]] = {}
        total = written = 0
        for name in names:
            try:
                file = self._folder.read(name)
            except GoneError:  # another run has merged it
                continue
            held[name] = list(parts(file, name))
            total += sum(part.nbytes for part in held[name])
            written += len(file)
            if total >= HELD or written >= LARGE:
                self._replace(held)
                held, total, written = {}, 0, 0
        self._replace(held)

    def _replace(self, held: dict[str, list[pa.RecordBatch]]) -> None:
        """By one file with the same rows, which is there before they go."""
        import pyarrow as pa

        if len(held) < 2:
            return
        table = pa.Table.from_batches([part for some in held.values() for part in some])
        best: dict[str, int] = {}
        whole = [failure is None for failure in table["failure"].to_pylist()]
        for place, key in enumerate(table["key"].to_pylist()):
            if key not in best or not whole[best[key]]:
                best[key] = place
        self._folder.write(content(table if len(best) == len(table) else table.take(list(best.values()))))
        for name in held:
            self._folder.remove(name)

    def _parts(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Every file, and those that others meanwhile write: what they merge is found again in what it became."""
        seen: set[str] = set()
        gone: set[str] = set()
        pauses = iter(PAUSES)
        while fresh := [name for name in self._folder.sizes() if name not in seen]:
            if still := gone.intersection(fresh):
                pause = next(pauses, None)
                if pause is None:
                    raise OutputError(f"{min(still)}: is listed and not there; remove it and run again")
                time.sleep(pause)
            for name in fresh:
                try:
                    file = self._folder.read(name)
                except GoneError:
                    gone.add(name)
                    continue
                seen.add(name)
                yield from parts(file, name, columns)
