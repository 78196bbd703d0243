"""What a campaign has found is written to a folder: tables, figures, and a record of how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.columns import Case, Found
from repeat_xai.experiments.detection_columns import Detection
from repeat_xai.experiments.table import Sheet, Table
from repeat_xai.files.atomic import writing
from repeat_xai.methods.provenance import VERSIONS, configuration
from repeat_xai.metrics.detection import mixture, roc
from repeat_xai.output.figures import histograms_by_method
from repeat_xai.output.figures import roc as roc_figure
from repeat_xai.output.results_folder import Printed, print_out
from repeat_xai.output.tables import write
from repeat_xai.version import __version__


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
