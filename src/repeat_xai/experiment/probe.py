"""How long will it take? One image of each setting is done first, and counts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from repeat_xai.experiment.run import Work
from repeat_xai.store import Row


class Cost(NamedTuple):
    """What is left to be done, by what one image of each setting took."""

    rows: int
    calls: int
    seconds: float


def first_of(work: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    """One image of each setting, and all the others."""
    rest = [Work(setting, numbers[1:]) for setting, numbers in work if len(numbers) > 1]
    return [Work(setting, numbers[:1]) for setting, numbers in work], rest


def timed(rows: Iterator[Row]) -> Iterator[tuple[Row, float]]:
    """Rows, and how long each was waited for."""
    before = time.monotonic()
    for row in rows:
        now = time.monotonic()
        yield row, now - before
        before = now


def cost(first: Sequence[tuple[Row, float]], left: Mapping[str, int]) -> Cost:
    """Of what is left of each setting, by the key of its first row: each image takes what the first one took."""
    counts = [left[row.key] for row, _ in first]
    calls = sum(count * row.calls for count, (row, _) in zip(counts, first, strict=True))
    seconds = sum(count * waited for count, (_, waited) in zip(counts, first, strict=True))
    return Cost(sum(counts), calls, seconds)
