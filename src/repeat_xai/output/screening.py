"""Explanations of a folder of images → which of them does the encoder not know? Ranked, and split by a mixture."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from repeat_xai.errors import ConfigurationError
from repeat_xai.files.atomic import remove_old_drafts, writing
from repeat_xai.metrics.detection import AGGREGATES, Mixture, mixture
from repeat_xai.output.figures import contact_sheet
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.results_folder import ImageOutcome, draw, expect_ours
from repeat_xai.output.tables import spreadsheet_text

COLUMNS = {
    "rank": "int64",
    "image": "string",
    "uncertainty": "float64",
    "unknown": "float64",
    "below": "float64",
    "panel": "string",
}
"""Of the table: `unknown` is the mixture's probability, `below` the share of reference images that are more certain."""
Row = tuple[int, str, float, float | None, float | None, str]
"""As the columns name it."""
SHOWN = 6
"""Images on each row of the sheet."""


class Score(NamedTuple):
    """How uncertain the encoder is about one image."""

    image: Path
    files: ResultFiles
    uncertainty: float


class Ranked(NamedTuple):
    """Scores from the most uncertain to the most certain, and what may be said of them together."""

    scores: list[Score]
    unknown: list[float | None]
    """None where the mixture does not separate: any number would mislead."""
    below: list[float | None]
    mixture: Mixture | None
    """None where there are too few images for one."""


def scored(outcomes: Sequence[ImageOutcome], *, aggregate: str) -> list[Score]:
    """Of the images that could be explained."""
    return [
        Score(o.path, o.files, AGGREGATES[aggregate](o.files.explanation().uncertainty).item())
        for o in outcomes
        if o.files is not None
    ]


def ranked(scores: Sequence[Score], reference: Sequence[Score], *, seed: int) -> Ranked:
    """Images by uncertainty; the mixture is of them and of the reference together."""
    found = sorted(scores, key=lambda score: -score.uncertainty)
    values, known = (
        torch.tensor([score.uncertainty for score in some], dtype=torch.float64) for some in (found, reference)
    )
    below = [(known < value).double().mean().item() if len(known) else None for value in values]
    nothing: list[float | None] = [None] * len(found)
    try:
        split = mixture(torch.cat((values, known)), seed=seed)
    except ConfigurationError:
        return Ranked(found, nothing, below, None)
    return Ranked(found, split.posterior(values).tolist() if split.separates else nothing, below, split)


def write(result: Ranked, folder: Path, about: Mapping[str, Any]) -> Path:
    """The table as CSV and Parquet, as JSON what made it and what the mixture says, and a sheet of its two ends."""
    remove_old_drafts(folder)
    numbered = enumerate(zip(result.scores, result.unknown, result.below, strict=True), start=1)
    rows: list[Row] = [
        (rank, _text(score.image), score.uncertainty, unknown, below, _text(score.files.panel))
        for rank, (score, unknown, below) in numbered
    ]
    table = folder / "screen.csv"
    _write_csv(rows, table)
    _write_parquet(rows, folder / "screen.parquet")
    said: dict[str, Any] = {**about, "images": len(result.scores), "statement": statement(result)}
    if result.mixture is not None:
        cut = result.mixture.threshold if result.mixture.separates else None
        fitted = asdict(result.mixture) | {"threshold": cut}
        said["mixture"] = {key: None if value == -math.inf else value for key, value in fitted.items()}
    with writing(folder / "screen.json") as draft:
        draft.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    if result.scores:
        ends = (result.scores[:SHOWN], result.scores[-SHOWN:][::-1])
        most, least = ([(s.files.explanation().photo, s.uncertainty) for s in end] for end in ends)
        values = [score.uncertainty for score in result.scores]
        expect_ours(folder / "screen.png")
        draw(contact_sheet(most, least, values, result.mixture), folder / "screen.png")
    return table


def _text(path: Path) -> str:
    """With a question mark for what is no text."""
    return str(path).encode(errors="replace").decode()


def _write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write numbers short enough to be read, and names that no spreadsheet takes for formulas."""
    with writing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for rank, image, uncertainty, *shares, panel in rows:
            cells = ("" if share is None else f"{share:.6f}" for share in shares)
            table.writerow((rank, spreadsheet_text(image), f"{uncertainty:.9g}", *cells, spreadsheet_text(panel)))


def _write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Numbers as they are, with their types; what is not known is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    columns = [[row[place] for row in rows] for place in range(len(COLUMNS))]
    with writing(path) as draft:
        pq.write_table(pa.table(columns, schema=schema), draft)


def statement(result: Ranked) -> str:
    """What may be said of the images, plainly."""
    return result.mixture.statement if result.mixture else "too few images to tell two kinds apart"
