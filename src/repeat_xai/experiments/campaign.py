"""Sheets to be filled, and the work that is left until they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from repeat_xai.errors import at_least
from repeat_xai.experiments.columns import Found
from repeat_xai.experiments.executors.executor import Executor, Work
from repeat_xai.experiments.making_rows import missing, results, run
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.table import Sheet
from repeat_xai.experiments.worker import Worker


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """Sheets to be filled from a store, on so many images of each dataset."""

    sheets: Sequence[Sheet]
    others: Sequence[Setting] = ()
    """Whose rows are wanted beside theirs."""
    images: int | None
    """Of each dataset; all, if not told."""
    at_most: bool = False
    """Whether a dataset may have fewer."""
    seed: int
    """What images are drawn by."""
    store: RowStore
    worker: Worker

    def __post_init__(self) -> None:
        at_least("images", 1 if self.images is None else self.images, 1)

    @property
    def settings(self) -> list[Setting]:
        """Each once."""
        return list(dict.fromkeys((*(s for sheet in self.sheets for s in sheet.settings), *self.others)))

    @property
    def numbers(self) -> dict[str, list[int]]:
        """Of the images, by dataset: a poisoned dataset's are those of the clean one."""
        names = dict.fromkeys(setting.dataset for setting in self.settings)
        return {name: self._drawn(name) for name in names}

    def _drawn(self, name: str) -> list[int]:
        found = self.worker.dataset(name)
        images = min(self.images, len(found)) if self.images is not None and self.at_most else self.images
        return found.draw(images, seed=self.seed)

    @property
    def rows(self) -> int:
        """In all."""
        numbers = self.numbers
        return sum(len(numbers[setting.dataset][: setting.first]) for setting in self.settings)

    def missing(self) -> list[Work]:
        """Return the work that is left."""
        needs: dict[Setting, set[str]] = {setting: set() for setting in self.settings}
        for sheet in self.sheets:
            for setting, scores in sheet.needs.items():
                needs[setting] |= scores
        return missing(needs, self.numbers, self.store, self.worker)

    def fill(self, work: Sequence[Work], executor: Executor) -> Iterator[Row]:
        """Do it."""
        return run(work, self.store, executor)

    def found(self) -> Found:
        """What is done."""
        return results(self.settings, self.numbers, self.store, self.worker)

    def made(self, setting: Setting, numbers: Sequence[int]) -> list[Row | None]:
        """What is done of some images, failures too."""
        keys = self.worker.keys(setting, numbers)
        rows = self.store.rows(set(keys))
        return [rows.get(key) for key in keys]

    def notes(self, sheet: Sheet) -> tuple[str, ...]:
        """What its table says of how it was made."""
        if not sheet.cases:
            return ("What the paper prints; nothing of it could be run.",)
        names = dict.fromkeys(setting.dataset for setting in sheet.settings)
        sets = ", ".join(f"{len(self._drawn(name))} images of {Path(name).name}" for name in names)
        encoders = {
            s.encoder_spec.label: self.worker.encoder(s.encoder_spec)
            for s in sheet.settings
            if not s.encoder_spec.randomise
        }
        weights = "; ".join(f"{label} {encoder.weights}" for label, encoder in encoders.items())
        best = "The best of an encoder's is bold; – is for what was not run or failed, too few images, or no such map."
        return (f"{sets}, drawn by seed {self.seed}. Weights: {weights}. {best}",)
