"""How long will it take? One image of each setting is done first, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.store.row import Row


class Cost(NamedTuple):
    """What is to be done, by what one image of each setting took."""

    rows: int
    calls: int
    seconds: float


def first_of(work: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    """One image of each setting, and all the others."""
    rest = [Work(setting, numbers[1:]) for setting, numbers in work if len(numbers) > 1]
    return [Work(setting, numbers[:1]) for setting, numbers in work], rest


def cost(first: Iterable[tuple[Row, int]], *, at_once: int) -> Cost:
    """Of so many images under the setting of each first row, each taking what the first one took."""
    counts, calls, seconds = zip(*((many, many * row.calls, many * row.seconds) for row, many in first), strict=True)
    return Cost(sum(counts), sum(calls), sum(seconds) / at_once)
