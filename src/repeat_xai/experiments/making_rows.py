"""Settings × images → rows in a store: only what is missing is made, and what is made is kept.

An executor makes rows of work; here it is found out what work there is, and rows are written as they come.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from repeat_xai.errors import OutputError
from repeat_xai.experiments.executors.executor import Executor, Work
from repeat_xai.experiments.measures import MapScores
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.map_store import MapStore, NoMapsError
from repeat_xai.experiments.store.row_schema import DamagedError, Row
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker

SECONDS_PER_FILE = 5.0
"""Seconds between two files, and of work in rows that are not written yet: what is lost if the run is killed."""
FILES_BETWEEN_MERGES = 16
"""Number of files that are written between two merges."""


class EstimatedCost(NamedTuple):
    """The cost of some work, estimated from the first image of each setting."""

    rows: int
    calls: int
    seconds: float


def missing(
    settings: Mapping[Setting, Collection[str]], numbers: Mapping[str, Sequence[int]], store: RowStore, worker: Worker
) -> list[Work]:
    """Return the work that is left: images of a setting whose row is not stored, failed, or lacks a score or its maps.

    `settings` gives the names of the scores that are wanted of each setting. Maps are looked at where they are to be
    kept; a row whose maps are damaged is made again, and a warning says so.
    """
    done = store.score_names()
    kept = worker.maps if worker.maps is not None and worker.maps.writable else None
    work = []
    for setting, scores in settings.items():
        wanted = numbers[setting.dataset][: setting.first]
        maps = kept if isinstance(setting.measure, MapScores) else None
        keys = zip(wanted, worker.keys(setting, wanted), strict=True)
        rows = ((number, key, done.get(key)) for number, key in keys)
        left = [n for n, key, names in rows if names is None or not names.issuperset(scores) or not _whole(maps, key)]
        if left:
            work.append(Work(setting, left))
    return work


def _whole(maps: MapStore | None, key: str) -> bool:
    """Say whether the maps of a row are stored and undamaged, where maps are kept at all."""
    try:
        if maps is not None:
            maps.read(key)
    except NoMapsError:
        return False
    except OutputError as error:
        warnings.warn(f"{error}; made again", stacklevel=2)
        return False
    return True


def run(work: Iterable[Work], store: RowStore, executor: Executor) -> Iterator[Row]:
    """Do the work, and tell of each row; all told of are written when this ends, however it does."""
    waiting: list[Row] = []
    last, files = time.monotonic(), 0
    rows = executor.rows(work)
    try:
        for row in rows:
            waiting.append(row)
            yield row
            if time.monotonic() - last > SECONDS_PER_FILE or sum(row.seconds for row in waiting) > SECONDS_PER_FILE:
                store.add(waiting)
                waiting, last, files = [], time.monotonic(), files + 1
                if files % FILES_BETWEEN_MERGES == 0:
                    _tidy(store)
    finally:
        try:
            store.add(waiting)
        finally:
            if isinstance(rows, Generator):
                rows.close()
    _tidy(store, at_the_end=True)


def _tidy(store: RowStore, *, at_the_end: bool = False) -> None:
    """Merge files and, at the end, remove rows that are there twice; where that fails, rows are kept as they are."""
    try:
        store.merge()
        if at_the_end:
            store.compact()
    except DamagedError:
        return  # whoever reads the rows is told which file it is
    except OutputError as error:
        warnings.warn(f"rows are kept but not merged: {error}", stacklevel=2)


def results(
    settings: Iterable[Setting], numbers: Mapping[str, Sequence[int]], store: RowStore, worker: Worker
) -> Callable[[Setting], list[Row | None]]:
    """What the store holds of these settings: rows in the order of the images, None where one failed or is missing."""
    keys = {setting: worker.keys(setting, numbers[setting.dataset][: setting.first]) for setting in settings}
    rows = store.rows({key for some in keys.values() for key in some})
    whole = {key: row for key, row in rows.items() if row.failure is None}
    return lambda setting: [whole.get(key) for key in keys[setting]]


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
