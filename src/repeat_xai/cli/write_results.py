"""What became of a campaign, told: tables on screen and in files, figures, and a page of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from repeat_xai.cli.explain_progress import print_page
from repeat_xai.cli.row_progress import STAMP
from repeat_xai.errors import in_one_line
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.output.campaign_results import write_figures, write_record, write_tables
from repeat_xai.output.page import FailedRow, NamedTable, write_tables_page
from repeat_xai.output.results_folder import Printed
from repeat_xai.output.tables import on_screen

WIDE = 1000
"""Columns where nobody looks: a file or another program, which gets all of it."""


def told(
    campaign: Campaign,
    out: Path,
    *,
    title: str,
    asked: object,
    notes: Sequence[str] = (),
    pictures: Sequence[Printed] = (),
    missing: Sequence[str] = (),
) -> None:
    """Write and show everything; `missing` is what could not be run."""
    found = campaign.rows_of()
    made = write_tables(campaign, found, out, notes)
    screen = Console()
    for table in made:
        (screen if screen.is_terminal else Console(width=WIDE)).print(on_screen(table))
    named = [NamedTable(sheet.name, table) for sheet, table in zip(campaign.sheets, made, strict=True)]
    drawn = [*pictures, *write_figures(campaign.sheets, found, out)]
    about = write_record(out, asked, campaign)
    typer.echo(f"tables and figures: {out}")
    failures = _failed_rows(campaign)
    page = write_tables_page(named, drawn, out, title=title, missing=missing, failures=failures, about=about)
    print_page(page)


def _failed_rows(campaign: Campaign) -> list[FailedRow]:
    """Return the rows of the campaign that failed, each once, with the reason but without the image in it."""
    numbers = campaign.image_numbers
    keys = [campaign.worker.keys(s, numbers[s.dataset][: s.max_images]) for s in campaign.settings]
    rows = campaign.store.rows({key for of_setting in keys for key in of_setting})
    return [
        FailedRow(
            image=STAMP.sub("", row.image),
            dataset=row.dataset,
            encoder=row.encoder,
            method=row.method or row.measure,
            reason=row.failure.replace(in_one_line(row.image), "").lstrip(": "),
        )
        for row in rows.values()
        if row.failure is not None
    ]
