"""Sheets → what is to be done, and when it is done tables and figures in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch

from repeat_xai.detect import mixture, roc
from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.experiment.columns import Case, Found
from repeat_xai.experiment.detection_columns import Detection
from repeat_xai.experiment.run import Executor, Work, missing, results, run
from repeat_xai.experiment.setting import Setting
from repeat_xai.experiment.table import Sheet, Table
from repeat_xai.experiment.worker import Worker
from repeat_xai.files import writing
from repeat_xai.gallery import Printed, print_out
from repeat_xai.plot import histograms_by_method
from repeat_xai.plot import roc as roc_figure
from repeat_xai.provenance import VERSIONS, configuration
from repeat_xai.store import Row, Store
from repeat_xai.tables import write
from repeat_xai.version import __version__


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
    store: Store
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
        return found.drawn(images, seed=self.seed)

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
        encoders = {s.network.label: self.worker.encoder(s.network) for s in sheet.settings if not s.network.randomise}
        weights = "; ".join(f"{label} {encoder.weights}" for label, encoder in encoders.items())
        best = "The best of an encoder's is bold; – is for what was not run or failed, too few images, or no such map."
        return (f"{sets}, drawn by seed {self.seed}. Weights: {weights}. {best}",)


def tables(campaign: Campaign, found: Found, folder: Path, notes: Sequence[str] = ()) -> list[Table]:
    """Every sheet filled, and written in every format."""
    made = []
    for sheet in campaign.sheets:
        table = sheet.table(found)
        made.append(replace(table, notes=(*table.notes, *notes, *campaign.notes(sheet))))
        write(made[-1], folder, sheet.name)
    return made


def figures(sheets: Sequence[Sheet], found: Found, folder: Path) -> list[Printed]:
    """For each encoder and dataset to be told from another: histograms of uncertainty by method, and ROC curves."""
    made = []
    for sheet in sheets:
        judged = {c.against: c for c in sheet.columns if isinstance(c, Detection) and c.baseline is None}
        for encoder in dict.fromkeys(encoder for encoder, _ in sheet.cases):
            mine = {label: case for (of, label), case in sheet.cases.items() if of == encoder}
            for against, column in judged.items():
                names = (sheet.name, encoder, Path(against).name)
                made += _detection(column, mine, found, folder, names, f"{sheet.title}, {encoder}")
    return made


def _detection(
    column: Detection, cases: Mapping[str, Case], found: Found, folder: Path, names: Sequence[str], title: str
) -> list[Printed]:
    groups, splits, curves = {}, {}, {}
    for label, case in cases.items():
        known, unknown = (scores[scores.isfinite()] for scores in column.scores(case, found))
        if len(known) and len(unknown):
            groups[label] = {case.setting.dataset: known, column.against: unknown}
            curves[label] = roc(known, unknown)
            try:
                splits[label] = mixture(torch.cat((known, unknown)), seed=case.setting.seed)
            except ConfigurationError:
                continue
    if not groups:
        return []
    places = [folder / f"{kind}-{'-'.join(names)}.png" for kind in ("histograms", "roc")]
    return [
        print_out(histograms_by_method(groups, splits), places[0], title=f"Histograms: {title}, against {names[-1]}"),
        print_out(roc_figure(curves), places[1], title=f"ROC curves: {title}, against {names[-1]}"),
    ]


def record(folder: Path, asked: object, campaign: Campaign) -> dict[str, Any]:
    """What was asked for, of which images, and in what surroundings."""
    about: dict[str, Any] = {
        "repeat-xai": __version__,
        "asked": configuration(asked),
        "images": {name: len(numbers) for name, numbers in campaign.numbers.items()},
        "seed": campaign.seed,
        "encoders": {
            setting.network.label: campaign.worker.encoder(setting.network).weights
            for setting in campaign.settings
            if setting.network.randomise is None
        },
        "versions": VERSIONS,
    }
    with writing(folder / "run.json") as draft:
        draft.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return about
