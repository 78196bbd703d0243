"""Rows in Parquet files that are written once, whole, and never changed: a folder of them is a store.

A run writes files of its own, so that runs side by side, or killed ones, can spoil nothing: every file is whole. Rows
with the same key say the same, so their scores are put together, and any row counts before a failure. The folder may be
on a disk, or be any URL that fsspec knows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store.merging import MANY, compact, merge
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.store.row_schema import SUMMARY, packed, parts, summaries, unpacked
from repeat_xai.experiments.store.store_folder import Folder, GoneError

if TYPE_CHECKING:
    import pyarrow as pa

PAUSES = (0.1, 0.5, 1, 2, 5, 10, 20)
"""Seconds to wait for a file that is listed and not there: a network's listing may be a minute old."""


@final
class Store:
    """A folder of rows."""

    def __init__(self, url: str | Path) -> None:
        self.url = str(url)
        self._folder = Folder(url)

    def add(self, rows: Collection[Row]) -> None:
        """Write these rows: all of them, or none if that fails."""
        if rows:
            self._folder.write(packed(rows))

    def done(self) -> dict[str, frozenset[str]]:
        """Return the keys of the rows that are no failures, each with the names of the row's scores."""
        names: dict[str, frozenset[str]] = {}
        for part in self._parts(SUMMARY):
            for row in summaries(part):
                if not row.failed:
                    names[row.key] = names.get(row.key, row.names) | row.names
        return names

    def rows(self, keys: Collection[str] | None = None) -> dict[str, Row]:
        """Return the rows of these keys, or all rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows: dict[str, Row] = {}
        wanted = None if keys is None else pa.array(list(keys), pa.string())
        for part in self._parts(None):
            for row in unpacked(part if wanted is None else part.filter(pc.is_in(part["key"], wanted))):
                rows[row.key] = _together(rows[row.key], row) if row.key in rows else row
        return rows

    def merge(self, *, at_least: int = MANY) -> None:
        """Make one file of those of about the same size, where there are at least so many."""
        with self._folder.alone() as alone:
            if alone:
                merge(self._folder, at_least=at_least)

    def compact(self) -> None:
        """Remove rows that say nothing but what another row of the same key says, as two runs at once leave them."""
        with self._folder.alone() as alone:
            if alone:
                compact(self._folder)

    def _parts(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every file, also of those that other runs write meanwhile, some rows at a time.

        Rows whose file is merged by another run before it is read are in the merged file.
        """
        read: set[str] = set()
        gone: set[str] = set()
        pauses = iter(PAUSES)
        while fresh := [name for name in self._folder.sizes() if name not in read]:
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
                read.add(name)
                yield from parts(file, name, columns)


def _together(earlier: Row, later: Row) -> Row:
    """Return what two rows of the same key say together."""
    if earlier.failure is not None:
        return later
    return earlier if later.failure is not None else replace(earlier, scores={**earlier.scores, **later.scores})
