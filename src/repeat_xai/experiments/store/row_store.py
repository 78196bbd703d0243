"""A store of rows: a folder of Parquet files, each of which is written once, as a whole, and never changed.

Every run writes files of its own, so that runs side by side, or a run that is killed, cannot damage what is there. Rows
with the same key hold the same results, so their scores are united, and any row counts before a failure. The folder may
lie on a disk or behind any URL that fsspec knows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from repeat_xai.errors import OutputError
from repeat_xai.experiments.store.merging import FILES_PER_MERGE, merge_files, remove_superfluous_rows
from repeat_xai.experiments.store.row_schema import (
    SUMMARY_COLUMNS,
    Row,
    parquet_of_rows,
    read_batches,
    rows_in,
    summaries_in,
)
from repeat_xai.experiments.store.store_folder import GoneError, StoreFolder

if TYPE_CHECKING:
    import pyarrow as pa

RETRY_PAUSES = (0.1, 0.5, 1, 2, 5, 10, 20)
"""Seconds to wait, one after the other, for a listed file that is missing: a network's listing may be a minute old."""


@final
class RowStore:
    """A folder or URL that holds rows."""

    def __init__(self, url: str | Path) -> None:
        self.url = str(url)
        self._folder = StoreFolder(url)

    def add(self, rows: Collection[Row]) -> None:
        """Write these rows: all of them, or none if writing fails."""
        if rows:
            self._folder.write(parquet_of_rows(rows))

    def score_names(self) -> dict[str, frozenset[str]]:
        """Return the names of the scores that are stored under each key, leaving out keys that have only failures."""
        names: dict[str, frozenset[str]] = {}
        for batch in self._batches(SUMMARY_COLUMNS):
            for row in summaries_in(batch):
                if not row.failed:
                    names[row.key] = names.get(row.key, row.names) | row.names
        return names

    def rows(self, keys: Collection[str] | None = None) -> dict[str, Row]:
        """Return the rows of these keys, or all rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows: dict[str, Row] = {}
        wanted = None if keys is None else pa.array(list(keys), pa.string())
        for batch in self._batches(None):
            for row in rows_in(batch if wanted is None else batch.filter(pc.is_in(batch["key"], wanted))):
                rows[row.key] = _united(rows[row.key], row) if row.key in rows else row
        return rows

    def merge(self, *, at_least: int = FILES_PER_MERGE) -> None:
        """Merge files of about the same size into one, where there are at least `at_least` of them."""
        with self._folder.locked() as locked:
            if locked:
                merge_files(self._folder, at_least=at_least)

    def compact(self) -> None:
        """Remove rows that repeat what another row of the same key holds, as two runs side by side leave them."""
        with self._folder.locked() as locked:
            if locked:
                remove_superfluous_rows(self._folder)

    def _batches(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every file, some at a time, including files that other runs write in the meantime.

        If another run merges a file before it is read, its rows are found in the merged file.
        """
        read: set[str] = set()
        gone: set[str] = set()
        pauses = iter(RETRY_PAUSES)
        while unread := [name for name in self._folder.sizes() if name not in read]:
            if still_listed := gone.intersection(unread):
                pause = next(pauses, None)
                if pause is None:
                    raise OutputError(f"{min(still_listed)}: is listed but missing; remove it and run again")
                time.sleep(pause)
            for name in unread:
                try:
                    content = self._folder.read(name)
                except GoneError:
                    gone.add(name)
                    continue
                read.add(name)
                yield from read_batches(content, name, columns)


def _united(earlier: Row, later: Row) -> Row:
    """Return one row with the scores of two rows of the same key; a row with numbers counts before a failure."""
    if earlier.failure is not None:
        return later
    return earlier if later.failure is not None else replace(earlier, scores={**earlier.scores, **later.scores})
