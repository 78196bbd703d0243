"""Functions that find out which rows a store lacks, let an executor make them, and store them as they come."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from repeat_xai.errors import OutputError
from repeat_xai.experiments.executors.executor import Executor, Work
from repeat_xai.experiments.map_scores import MapScores
from repeat_xai.experiments.row_scores import RowsOf
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.map_store import MapStore, NoMapsError
from repeat_xai.experiments.store.row_schema import DamagedError, Row
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker

SECONDS_PER_FILE = 5.0
"""Seconds between two files, and seconds of work in the rows of a file. A run that is killed loses no more work."""
FILES_BETWEEN_MERGES = 16
"""Number of files that are written between two merges."""


class EstimatedCost(NamedTuple):
    """The cost of some work, estimated from the first image of each setting."""

    rows: int
    calls: int
    seconds: float


def missing_work(
    score_names: Mapping[Setting, Collection[str]],
    numbers: Mapping[str, Sequence[int]],
    store: RowStore,
    worker: Worker,
) -> list[Work]:
    """Return the work that is left: the images of each setting whose row is not stored, failed, or is incomplete.

    A row is incomplete if it lacks one of the setting's `score_names`, or if maps are kept and those of the row are
    missing or damaged. A warning names damaged maps.
    """
    stored_names = store.score_names()
    kept_maps = worker.maps if worker.maps is not None and worker.maps.writable else None
    work = []
    for setting, wanted_names in score_names.items():
        wanted = numbers[setting.dataset][: setting.max_images]
        maps = kept_maps if isinstance(setting.measure, MapScores) else None
        left = []
        for number, key in zip(wanted, worker.keys(setting, wanted), strict=True):
            names = stored_names.get(key)
            if names is None or not names.issuperset(wanted_names) or not _has_maps(maps, key):
                left.append(number)
        if left:
            work.append(Work(setting, left))
    return work


def _has_maps(maps: MapStore | None, key: str) -> bool:
    """Return whether the maps of a row are stored and undamaged; always true if no maps are kept."""
    try:
        if maps is not None:
            maps.read(key)
    except NoMapsError:
        return False
    except OutputError as error:
        warnings.warn(f"{error}; made again", stacklevel=2)
        return False
    return True


def make_rows(work: Iterable[Work], store: RowStore, executor: Executor) -> Iterator[Row]:
    """Yield each row as it is made, and store it; every row that was yielded is stored, also after an interruption."""
    unwritten: list[Row] = []
    last, files = time.monotonic(), 0
    rows = executor.rows(work)
    try:
        for row in rows:
            unwritten.append(row)
            yield row
            if time.monotonic() - last > SECONDS_PER_FILE or sum(row.seconds for row in unwritten) > SECONDS_PER_FILE:
                store.add(unwritten)
                unwritten, last, files = [], time.monotonic(), files + 1
                if files % FILES_BETWEEN_MERGES == 0:
                    _merge_files(store)
    finally:
        try:
            store.add(unwritten)
        finally:
            if isinstance(rows, Generator):
                rows.close()
    _merge_files(store, compact=True)


def _merge_files(store: RowStore, *, compact: bool = False) -> None:
    """Merge files and, with `compact`, remove rows that are stored twice; leave all rows as they are if that fails."""
    try:
        store.merge()
        if compact:
            store.compact()
    except DamagedError:
        return  # the error appears again, with the name of the file, when the rows are read
    except OutputError as error:
        warnings.warn(f"rows are kept but not merged: {error}", stacklevel=2)


def stored_rows(
    settings: Iterable[Setting], numbers: Mapping[str, Sequence[int]], store: RowStore, worker: Worker
) -> RowsOf:
    """Read the rows of these settings, and return a function that gives those of each setting.

    The function returns rows in the order of the images, and None for an image that failed or has no row.
    """
    keys = {setting: worker.keys(setting, numbers[setting.dataset][: setting.max_images]) for setting in settings}
    rows = store.rows({key for keys_of_setting in keys.values() for key in keys_of_setting})
    measured = {key: row for key, row in rows.items() if row.failure is None}
    return lambda setting: [measured.get(key) for key in keys[setting]]


def split_first_images(work: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    """Return the work for the first image of each setting, and the work for all other images."""
    rest = [Work(setting, numbers[1:]) for setting, numbers in work if len(numbers) > 1]
    return [Work(setting, numbers[:1]) for setting, numbers in work], rest


def estimate_cost(first_rows: Iterable[tuple[Row, int]], *, concurrency: int) -> EstimatedCost:
    """Return the cost of all images, given the first row of each setting and the setting's number of images.

    Every image is assumed to cost what the first one of its setting did; `concurrency` rows are made at the same time.
    """
    parts = ((count, count * row.calls, count * row.seconds) for row, count in first_rows)
    counts, calls, seconds = zip(*parts, strict=True)
    return EstimatedCost(sum(counts), sum(calls), sum(seconds) / concurrency)
