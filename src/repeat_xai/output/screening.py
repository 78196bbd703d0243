"""Screening a folder of images: which of them does the encoder not know?

Images are ranked by their uncertainty, and a mixture of two normal distributions says whether their scores form two
groups. The table is written while the images are explained, so that an interrupted run leaves a table of the
images that are done.
"""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from repeat_xai.errors import ConfigurationError, OutputError, RepeatError, in_one_line
from repeat_xai.files.atomic import remove_old_drafts, writing
from repeat_xai.files.reading import open_regular, read_json
from repeat_xai.metrics.detection import AGGREGATES, Mixture, mixture
from repeat_xai.output.figures import contact_sheet
from repeat_xai.output.image_results import ResultFiles
from repeat_xai.output.results_folder import ImageOutcome, draw, expect_ours
from repeat_xai.output.tables import spreadsheet_text

COLUMNS = {
    "rank": "int64",
    "image": "string",
    "uncertainty": "float64",
    "in_higher_group": "float64",
    "share_of_reference_below": "float64",
    "panel": "string",
    "failure": "string",
}
"""The columns of the table, with their types.

`in_higher_group` is the mixture's probability that the image belongs to the group of higher scores,
`share_of_reference_below` the share of reference images with a lower score, `panel` a path in the folder of the
results, `failure` the reason why an image has no score.
"""
ScreenLine = tuple[int, str, float | None, float | None, float | None, str | None, str | None]
"""A line of the table, in the order of its columns."""
IMAGES_PER_ROW = 6
"""Images in each row of the contact sheet."""
SECONDS_BETWEEN_TABLES = 3.0
WRITING_SHARE = 0.1
"""Share of the time that may go into writing tables while images are explained: that of many images takes seconds."""


class Score(NamedTuple):
    """The uncertainty of one image, summed up in one number, and where the image's results are."""

    image: Path
    files: ResultFiles
    uncertainty: float


class Failure(NamedTuple):
    """An image that could not be explained."""

    image: Path
    error: RepeatError

    @property
    def reason(self) -> str:
        """The message of the error without the path, which the table has in a column of its own."""
        return str(self.error).removeprefix(f"{in_one_line(str(self.image))}: ")


class Ranked(NamedTuple):
    """Scores from the most uncertain to the most certain, and what can be said of them together."""

    scores: list[Score]
    in_higher_group: list[float | None]
    """By score, the probability that the image is of the more uncertain group; None where there are not two groups."""
    share_of_reference_below: list[float | None]
    """By score, the share of reference images with a lower one; None without reference images."""
    mixture: Mixture | None
    """None where there are too few images for one."""
    failures: Sequence[Failure] = ()


class Screened(NamedTuple):
    """The result of screening a folder, and the table it was written to."""

    ranked: Ranked
    reference: list[Score]
    failures: list[Failure]
    """Images and reference images that could not be explained."""
    table: Path


def expect_own_table(folder: Path) -> None:
    """Refuse a folder with a table or a sheet of the user's own, which would be written over."""
    tables = [folder / f"screen.{suffix}" for suffix in ("csv", "parquet", "json")]
    for table in tables:
        if table.exists() and not _is_our_table(folder):
            raise OutputError(f"{table}: is not of this program and is not written over; choose another folder")
    expect_ours(folder / "screen.png")


def _is_our_table(folder: Path) -> bool:
    """Return whether the record or the first line of the table says that this program wrote it."""
    with suppress(OSError, ValueError):
        if {"statement", "aggregate", "seed"} <= read_json(folder / "screen.json").keys():
            return True
    with suppress(OSError), open_regular(folder / "screen.csv") as file:
        return file.readline(100).startswith(b"rank,image,")
    return False


def screen_images(
    outcomes: Iterable[ImageOutcome],
    reference_outcomes: Iterable[ImageOutcome],
    folder: Path,
    *,
    total: int,
    aggregate: str,
    seed: int,
    about: Mapping[str, Any],
) -> Screened:
    """Score every image as soon as it is explained, rank them, and write the results to a folder.

    While images are explained, and when that is interrupted, a partial table of the images so far is written, unless
    all of them were explained before, by a run that may have left a whole table. `total` is their number in the end.
    `about` is what `screen.json` says of how the scores were made.
    """
    remove_old_drafts(folder)
    scores: list[Score] = []
    failures: list[Failure] = []
    reference: list[Score] = []
    reference_failures: list[Failure] = []

    is_new = False

    def write_partial() -> None:
        if is_new:
            write(_ranked_so_far(scores, failures), folder, about, total=total)

    due = time.monotonic() + SECONDS_BETWEEN_TABLES
    try:
        for outcome in outcomes:
            _collect(outcome, scores, failures, aggregate=aggregate)
            is_new = is_new or not outcome.already_done
            if (started := time.monotonic()) >= due:
                write_partial()
                due = time.monotonic() + max(SECONDS_BETWEEN_TABLES, (time.monotonic() - started) / WRITING_SHARE)
        for outcome in reference_outcomes:
            _collect(outcome, reference, reference_failures, aggregate=aggregate)
    except BaseException:  # an interrupt, too
        with suppress(RepeatError):  # the user is to read why the run ended, not why this table cannot be written
            write_partial()
        raise
    result = ranked(scores, reference, seed=seed)._replace(failures=failures)
    return Screened(result, reference, [*failures, *reference_failures], write(result, folder, about))


def _collect(outcome: ImageOutcome, scores: list[Score], failures: list[Failure], *, aggregate: str) -> None:
    """Add the score of an image that was explained, or the reason why it was not."""
    if outcome.files is not None:
        uncertainty = AGGREGATES[aggregate](outcome.files.explanation().required_uncertainty).item()
        scores.append(Score(outcome.path, outcome.files, uncertainty))
    elif outcome.error is not None:
        failures.append(Failure(outcome.path, outcome.error))


def ranked(scores: Sequence[Score], reference: Sequence[Score], *, seed: int) -> Ranked:
    """Rank images by uncertainty, and fit a mixture to their scores and those of the reference images together."""
    in_order = sorted(scores, key=lambda score: -score.uncertainty)
    values, known = (
        torch.tensor([score.uncertainty for score in group], dtype=torch.float64) for group in (in_order, reference)
    )
    shares_below = [(known < value).double().mean().item() if len(known) else None for value in values]
    nothing: list[float | None] = [None] * len(in_order)
    try:
        fitted = mixture(torch.cat((values, known)), seed=seed)
    except ConfigurationError:
        return Ranked(in_order, nothing, shares_below, None)
    in_higher_group = fitted.posterior(values).tolist() if fitted.separates else nothing
    return Ranked(in_order, in_higher_group, shares_below, fitted)


def _ranked_so_far(scores: Sequence[Score], failures: Sequence[Failure]) -> Ranked:
    """Rank the images so far, without a mixture, which would change with every further image."""
    in_order = sorted(scores, key=lambda score: -score.uncertainty)
    nothing: list[float | None] = [None] * len(in_order)
    return Ranked(in_order, nothing, nothing, None, failures)


def write(result: Ranked, folder: Path, about: Mapping[str, Any], *, total: int | None = None) -> Path:
    """Write the table as CSV and Parquet, `screen.json` with the mixture, and a contact sheet; return the CSV's path.

    With a `total`, the table is a partial one of so many images: there is no contact sheet, and `screen.json` says so.
    """
    lines = _lines(result, folder)
    partial = total is not None
    if partial:  # the mark first, so that no partial table is taken for a whole one at any moment
        _write_json(result, folder, about, total=total)
    table = folder / "screen.csv"
    _write_csv(lines, table)
    _write_parquet(lines, folder / "screen.parquet")
    if not partial:
        _write_json(result, folder, about, total=None)
        if result.scores:
            _draw_contact_sheet(result, folder / "screen.png")
    return table


def statement(result: Ranked) -> str:
    """Return in words whether the scores form two groups, and so whether images get a probability."""
    if result.mixture is None:
        return "too few images to tell whether their scores form two groups"
    consequence = "" if result.mixture.separates else ", so no image gets a probability"
    return result.mixture.statement + consequence


def _lines(result: Ranked, folder: Path) -> list[ScreenLine]:
    """Return the lines of the table: images by uncertainty, then those that failed."""
    scored = zip(result.scores, result.in_higher_group, result.share_of_reference_below, strict=True)
    lines: list[ScreenLine] = [
        (
            rank,
            _text(score.image),
            score.uncertainty,
            in_higher_group,
            share_below,
            _text(score.files.panel.relative_to(folder)),
            None,
        )
        for rank, (score, in_higher_group, share_below) in enumerate(scored, start=1)
    ]
    for rank, failure in enumerate(result.failures, start=len(lines) + 1):
        lines.append((rank, _text(failure.image), None, None, None, None, failure.reason))
    return lines


def _text(path: Path) -> str:
    """Return a path as text, with a question mark for every byte that is none."""
    return str(path).encode(errors="replace").decode()


def _write_csv(lines: Sequence[ScreenLine], path: Path) -> None:
    """Write numbers short enough to be read, and texts that no spreadsheet takes for formulas."""
    with writing(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for rank, image, uncertainty, *shares, panel, failure in lines:
            numbers = ("" if uncertainty is None else f"{uncertainty:.9g}", *map(_share, shares))
            texts = (spreadsheet_text(text or "") for text in (panel, failure))
            table.writerow((rank, spreadsheet_text(image), *numbers, *texts))


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _write_parquet(lines: Sequence[ScreenLine], path: Path) -> None:
    """Write numbers with every digit and texts unchanged; a missing value is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    columns = [[line[place] for line in lines] for place in range(len(COLUMNS))]
    with writing(path) as draft:
        pq.write_table(pa.table(columns, schema=schema), draft)


def _write_json(result: Ranked, folder: Path, about: Mapping[str, Any], *, total: int | None) -> None:
    """Write how the scores were made, how many images there are, and the mixture; `total` marks a partial table."""
    done = len(result.scores) + len(result.failures)
    summary: dict[str, Any] = {
        **about,
        "partial": total is not None,
        "images": len(result.scores),
        "failed": len(result.failures),
        "statement": statement(result) if total is None else f"interrupted or still running: {done} of {total} images",
    }
    if result.mixture is not None:
        cut = result.mixture.threshold if result.mixture.separates else None
        fitted = asdict(result.mixture) | {"threshold": cut}
        summary["mixture"] = {key: None if value == -math.inf else value for key, value in fitted.items()}
    with writing(folder / "screen.json") as draft:
        draft.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def _draw_contact_sheet(result: Ranked, path: Path) -> None:
    ends = (result.scores[:IMAGES_PER_ROW], result.scores[-IMAGES_PER_ROW:][::-1])
    most, least = ([(score.files.explanation().photo, score.uncertainty) for score in end] for end in ends)
    expect_ours(path)
    draw(contact_sheet(most, least, [score.uncertainty for score in result.scores], result.mixture), path)
