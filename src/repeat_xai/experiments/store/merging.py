"""Merging of a store's files and removal of rows that are stored twice, which lose no row at any moment.

A file that replaces others is written before they are removed. A run that is killed in between leaves rows that are
stored twice; they count once, and the next run removes them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from repeat_xai.experiments.store.row_schema import RowSummary, parquet_of_table, read_batches, summaries_in
from repeat_xai.experiments.store.store_folder import GoneError, StoreFolder

if TYPE_CHECKING:
    import pyarrow as pa

MAX_MERGED_BYTES = 16 * 2**20
"""Size of a file in bytes from which it is no longer merged."""
MAX_BYTES_IN_MEMORY = 256 * 2**20
"""Size in bytes of the rows that merging holds in memory."""
FILES_PER_MERGE = 16
"""Number of files of about the same size from which merging pays."""


def merge_files(folder: StoreFolder, *, at_least: int) -> None:
    """Merge files of about the same size into one, where there are at least `at_least` of them."""
    same_size: dict[int, list[str]] = defaultdict(list)
    for name, size in folder.sizes().items():
        if size < MAX_MERGED_BYTES:
            same_size[int(math.log(max(size, 1), FILES_PER_MERGE))].append(name)
    for names in same_size.values():
        if len(names) >= max(2, at_least):
            _merge(folder, names)


def remove_superfluous_rows(folder: StoreFolder) -> None:
    """Remove rows that repeat what another row of the same key holds."""
    seen: set[str] = set()
    repeated: set[str] = set()
    for _, row in _all_rows(folder):
        (repeated if row.key in seen else seen).add(row.key)
    if not repeated:
        return
    same_key: dict[str, list[tuple[str, RowSummary]]] = defaultdict(list)
    for name, row in _all_rows(folder):
        if row.key in repeated:
            same_key[row.key].append((name, row))
    superfluous: dict[str, set[int]] = defaultdict(set)
    for rows in same_key.values():
        for name, row in _superfluous(rows):
            superfluous[name].add(row.position)
    for name, positions in superfluous.items():
        _remove_rows(folder, name, positions)


def _superfluous(rows: list[tuple[str, RowSummary]]) -> Iterator[tuple[str, RowSummary]]:
    """Yield the rows of one key that others make superfluous: those with more scores are kept first, failures last."""
    kept: list[RowSummary] = []
    for name, row in sorted(rows, key=lambda named: (named[1].failed, -len(named[1].names))):
        if any(row.failed or row.names <= better.names for better in kept):
            yield name, row
        else:
            kept.append(row)


def _remove_rows(folder: StoreFolder, name: str, positions: set[int]) -> None:
    """Replace a file by one without the rows at these positions."""
    import pyarrow as pa

    try:
        table = pa.Table.from_batches(read_batches(folder.read(name), name))
    except GoneError:  # another machine has merged it
        return
    kept = [position for position in range(len(table)) if position not in positions]
    if kept:
        folder.write(parquet_of_table(table.take(kept)))
    folder.remove(name)


def _merge(folder: StoreFolder, names: Iterable[str]) -> None:
    """Merge these files, as many at a time as may be held in memory."""
    held: dict[str, list[pa.RecordBatch]] = {}
    bytes_in_memory = bytes_on_disk = 0
    for name in names:
        try:
            content = folder.read(name)
        except GoneError:  # another machine has merged it
            continue
        held[name] = list(read_batches(content, name))
        bytes_in_memory += sum(batch.nbytes for batch in held[name])
        bytes_on_disk += len(content)
        if bytes_in_memory >= MAX_BYTES_IN_MEMORY or bytes_on_disk >= MAX_MERGED_BYTES:
            _replace(folder, held)
            held, bytes_in_memory, bytes_on_disk = {}, 0, 0
    _replace(folder, held)


def _replace(folder: StoreFolder, held: dict[str, list[pa.RecordBatch]]) -> None:
    """Write one file with all rows of these files, then remove them."""
    import pyarrow as pa

    if len(held) < 2:
        return
    table = pa.Table.from_batches([batch for batches in held.values() for batch in batches])
    folder.write(parquet_of_table(table))
    for name in held:
        folder.remove(name)


def _all_rows(folder: StoreFolder) -> Iterator[tuple[str, RowSummary]]:
    """Yield the summary of every row, with its position in its file, and the name of the file."""
    for name in folder.sizes():
        try:
            content = folder.read(name)
        except GoneError:
            continue
        first = 0
        for batch in read_batches(content, name):
            yield from ((name, row._replace(position=first + row.position)) for row in summaries_in(batch))
            first += len(batch)
