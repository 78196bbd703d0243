"""Work done in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, final

from repeat_xai.experiments.making_rows import Work
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.worker import Worker


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Local:
    """In this process, on one device."""

    worker: Worker
    at_once: ClassVar[int] = 1

    def rows(self, work: Iterable[Work]) -> Iterator[Row]:
        for setting, numbers in work:
            yield from self.worker.rows(setting, numbers)
