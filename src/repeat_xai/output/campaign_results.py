"""The results of a campaign as files: tables, figures of detection, and a record of how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from repeat_xai.data.open_dataset import dataset_name
from repeat_xai.errors import ConfigurationError, shown
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.detection_columns import DetectionColumn
from repeat_xai.experiments.row_scores import LineContent, RowsOf
from repeat_xai.experiments.table import Sheet, Table
from repeat_xai.files.atomic import writing
from repeat_xai.files.reading import read_json
from repeat_xai.methods.provenance import VERSIONS, configuration
from repeat_xai.metrics.detection import mixture, roc
from repeat_xai.output.figures import histograms_by_method
from repeat_xai.output.figures import roc as roc_figure
from repeat_xai.output.results_folder import FigureFiles, write_figure_files
from repeat_xai.output.tables import write
from repeat_xai.version import __version__


def write_tables(campaign: Campaign, rows_of: RowsOf, folder: Path, notes: Sequence[str] = ()) -> list[Table]:
    """Fill every sheet from the rows, write its table in every format, and return the tables."""
    tables = []
    for sheet in campaign.sheets:
        table = sheet.table(rows_of)
        tables.append(replace(table, notes=(*table.notes, *notes, *campaign.notes(sheet))))
        write(tables[-1], folder, sheet.name)
    return tables


def write_figures(sheets: Sequence[Sheet], rows_of: RowsOf, folder: Path) -> list[FigureFiles]:
    """Write the figures of every out-of-distribution dataset: histograms of uncertainty by method, and ROC curves."""
    files = []
    for sheet in sheets:
        columns = {column.against: column for column in sheet.columns if isinstance(column, DetectionColumn)}
        for encoder in dict.fromkeys(encoder for encoder, _ in sheet.contents):
            contents = {label: content for (name, label), content in sheet.contents.items() if name == encoder}
            for against, column in columns.items():
                names = (sheet.name, encoder, Path(against).name)
                files += _detection_figures(column, contents, rows_of, folder, names, f"{sheet.title}, {encoder}")
    return files


def _detection_figures(
    column: DetectionColumn,
    contents: Mapping[str, LineContent],
    rows_of: RowsOf,
    folder: Path,
    names: Sequence[str],
    title: str,
) -> list[FigureFiles]:
    """Write the histograms and the ROC curves of one column, with one for each method; none if no method has scores."""
    groups, mixtures, curves = {}, {}, {}
    for label, content in contents.items():
        known, unknown = (scores[scores.isfinite()] for scores in column.scores(content, rows_of))
        if len(known) and len(unknown):
            groups[label] = {dataset_name(content.setting.dataset): known, dataset_name(column.against): unknown}
            curves[label] = roc(known, unknown)
            try:
                mixtures[label] = mixture(torch.cat((known, unknown)), seed=content.setting.seed)
            except ConfigurationError:  # there are too few images for a mixture; the histogram is drawn without one
                continue
    if not groups:
        return []
    pictures = [folder / f"{kind}-{'-'.join(names)}.png" for kind in ("histograms", "roc")]
    return [
        write_figure_files(
            histograms_by_method(groups, mixtures), pictures[0], title=f"Histograms: {title}, against {names[-1]}"
        ),
        write_figure_files(roc_figure(curves), pictures[1], title=f"ROC curves: {title}, against {names[-1]}"),
    ]


def expect_same_seed(folder: Path, seed: int) -> None:
    """Refuse a folder whose tables were made with another seed, since they would be replaced."""
    try:
        record = read_json(folder / "run.json")
    except (OSError, ValueError):
        return
    if "repeat-xai" in record and record.get("seed") != seed:
        earlier = shown(record.get("seed"))
        raise ConfigurationError(f"{folder}: holds tables made with seed {earlier}, not {seed}; choose another folder")


def write_record(folder: Path, request: object, campaign: Campaign) -> dict[str, Any]:
    """Write `run.json` and return its content: the request, the number of images, the weights and the versions."""
    about: dict[str, Any] = {
        "repeat-xai": __version__,
        "request": configuration(request),
        "images": {name: len(numbers) for name, numbers in campaign.image_numbers.items()},
        "seed": campaign.seed,
        "encoders": {
            setting.encoder_spec.label: campaign.worker.encoder(setting.encoder_spec).weights
            for setting in campaign.settings
            if setting.encoder_spec.randomise is None
        },
        "versions": VERSIONS,
    }
    with writing(folder / "run.json") as draft:
        draft.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return about
