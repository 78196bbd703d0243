"""A campaign: sheets to be filled, the store that holds their rows, and the work that is still missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from repeat_xai.errors import at_least
from repeat_xai.experiments.executors.executor import Executor, Work
from repeat_xai.experiments.making_rows import make_rows, missing_work, stored_rows
from repeat_xai.experiments.row_scores import RowsOf
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.table import Sheet
from repeat_xai.experiments.worker import Worker


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """Sheets to be filled from a store of rows, with a number of images of each dataset."""

    sheets: Sequence[Sheet]
    extra_settings: Sequence[Setting] = ()
    """Settings whose rows are wanted although no sheet needs them, as for figures."""
    images: int | None
    """Number of images that are drawn from each dataset; None takes all."""
    allow_fewer: bool = False
    """Whether a dataset may have fewer images than that."""
    seed: int
    """Seed from which the images are drawn."""
    store: RowStore
    worker: Worker
    """The worker that names rows, datasets and encoders."""

    def __post_init__(self) -> None:
        at_least("images", 1 if self.images is None else self.images, 1)

    @property
    def settings(self) -> list[Setting]:
        """All settings whose rows are wanted, each once."""
        return list(dict.fromkeys((*(s for sheet in self.sheets for s in sheet.settings), *self.extra_settings)))

    @property
    def image_numbers(self) -> dict[str, list[int]]:
        """The numbers of the images that are drawn, by dataset; a poisoned dataset has those of the clean one."""
        names = dict.fromkeys(setting.dataset for setting in self.settings)
        return {name: self._draw_images(name) for name in names}

    def _draw_images(self, name: str) -> list[int]:
        dataset, count = self.worker.dataset(name), self.images
        if count is not None and self.allow_fewer:
            count = min(count, len(dataset))
        return dataset.draw(count, seed=self.seed)

    @property
    def row_count(self) -> int:
        """The number of rows that are wanted, stored or not."""
        numbers = self.image_numbers
        return sum(len(numbers[setting.dataset][: setting.max_images]) for setting in self.settings)

    def missing_work(self) -> list[Work]:
        """Return the work whose rows are not stored yet."""
        names: dict[Setting, set[str]] = {setting: set() for setting in self.settings}
        for sheet in self.sheets:
            for setting, score_names in sheet.score_names.items():
                names[setting] |= score_names
        return missing_work(names, self.image_numbers, self.store, self.worker)

    def make_rows(self, work: Sequence[Work], executor: Executor) -> Iterator[Row]:
        """Yield the rows of this work as they are made, and store them."""
        return make_rows(work, self.store, executor)

    def rows_of(self) -> RowsOf:
        """Read the rows from the store, and return a function that gives those of each setting."""
        return stored_rows(self.settings, self.image_numbers, self.store, self.worker)

    def rows_of_images(self, setting: Setting, numbers: Sequence[int]) -> list[Row | None]:
        """Return the stored rows of some images, including those of images that failed; None where there is none."""
        keys = self.worker.keys(setting, numbers)
        rows = self.store.rows(set(keys))
        return [rows.get(key) for key in keys]

    def notes(self, sheet: Sheet) -> tuple[str, ...]:
        """Return notes for a sheet's table that say which images and weights its numbers come from."""
        if not sheet.contents:
            return ("These are the numbers printed in the paper; none of them could be reproduced.",)
        names = dict.fromkeys(setting.dataset for setting in sheet.settings)
        images = ", ".join(f"{len(self._draw_images(name))} images of {Path(name).name}" for name in names)
        specs = dict.fromkeys(setting.encoder_spec for setting in sheet.settings)
        encoders = {spec.label: self.worker.encoder(spec) for spec in specs if spec.randomise is None}
        weights = "; ".join(f"{label} {encoder.weights}" for label, encoder in encoders.items())
        signs = (
            "In each column the best number of each encoder is bold. – means that there is no number: it was not run, "
            "it failed, there are too few images, or the method has no such map."
        )
        return (f"{images}, drawn by seed {self.seed}. Weights: {weights}. {signs}",)
