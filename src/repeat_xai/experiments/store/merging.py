"""Fewer files and no row twice: what may be done to a store of rows at any time without losing one.

A file that takes the place of others is written before they are removed. A run that is killed in between leaves rows
twice, which count once and are removed by the next run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from repeat_xai.experiments.store.row_schema import Summary, content, parts, summaries
from repeat_xai.experiments.store.store_folder import Folder, GoneError

if TYPE_CHECKING:
    import pyarrow as pa

LARGE = 16 * 2**20
"""Bytes from which a file is not merged any more."""
HELD = 256 * 2**20
"""Bytes of rows that merging holds in memory."""
MANY = 16
"""Number of files of about the same size from which merging pays."""


def merge(folder: Folder, *, at_least: int) -> None:
    """Make one file of those of about the same size, where there are at least so many."""
    alike: dict[int, list[str]] = defaultdict(list)
    for name, size in folder.sizes().items():
        if size < LARGE:
            alike[int(math.log(max(size, 1), MANY))].append(name)
    for names in alike.values():
        if len(names) >= max(2, at_least):
            _merge(folder, names)


def compact(folder: Folder) -> None:
    """Remove rows that say nothing but what another row of the same key says."""
    once: set[str] = set()
    several: set[str] = set()
    for _, row in _all_rows(folder):
        (several if row.key in once else once).add(row.key)
    if not several:
        return
    same_key: dict[str, list[tuple[str, Summary]]] = defaultdict(list)
    for name, row in _all_rows(folder):
        if row.key in several:
            same_key[row.key].append((name, row))
    superfluous: dict[str, set[int]] = defaultdict(set)
    for rows in same_key.values():
        for name, row in _superfluous(rows):
            superfluous[name].add(row.place)
    for name, places in superfluous.items():
        _remove_rows(folder, name, places)


def _superfluous(rows: list[tuple[str, Summary]]) -> Iterator[tuple[str, Summary]]:
    """Yield the rows of one key that others make superfluous: those with more scores are kept first, failures last."""
    kept: list[Summary] = []
    for name, row in sorted(rows, key=lambda named: (named[1].failed, -len(named[1].names))):
        if any(row.failed or row.names <= better.names for better in kept):
            yield name, row
        else:
            kept.append(row)


def _remove_rows(folder: Folder, name: str, places: set[int]) -> None:
    import pyarrow as pa

    try:
        table = pa.Table.from_batches(parts(folder.read(name), name))
    except GoneError:  # another machine has merged it
        return
    left = [place for place in range(len(table)) if place not in places]
    if left:
        folder.write(content(table.take(left)))
    folder.remove(name)


def _merge(folder: Folder, names: Iterable[str]) -> None:
    """Merge these files, as many at a time as may be held in memory."""
    held: dict[str, list[pa.RecordBatch]] = {}
    total = written = 0
    for name in names:
        try:
            file = folder.read(name)
        except GoneError:  # another machine has merged it
            continue
        held[name] = list(parts(file, name))
        total += sum(part.nbytes for part in held[name])
        written += len(file)
        if total >= HELD or written >= LARGE:
            _replace(folder, held)
            held, total, written = {}, 0, 0
    _replace(folder, held)


def _replace(folder: Folder, held: dict[str, list[pa.RecordBatch]]) -> None:
    """Write one file with all rows of these files, then remove them."""
    import pyarrow as pa

    if len(held) < 2:
        return
    folder.write(content(pa.Table.from_batches([part for batches in held.values() for part in batches])))
    for name in held:
        folder.remove(name)


def _all_rows(folder: Folder) -> Iterator[tuple[str, Summary]]:
    """Yield the key, failure and names of scores of every row, with the name of its file."""
    for name in folder.sizes():
        try:
            file = folder.read(name)
        except GoneError:
            continue
        place = 0
        for part in parts(file, name):
            yield from ((name, row._replace(place=place + row.place)) for row in summaries(part))
            place += len(part)
