"""The results of a campaign are written and shown: tables, figures, and a page of both."""

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
from repeat_xai.output.results_folder import FigureFiles
from repeat_xai.output.tables import on_screen

FILE_WIDTH = 1000
"""Columns of a table that goes to a file or to another program, so that nothing is cut off."""


def write_results(
    campaign: Campaign,
    out: Path,
    *,
    title: str,
    request: object,
    notes: Sequence[str] = (),
    pictures: Sequence[FigureFiles] = (),
    missing: Sequence[str] = (),
) -> None:
    """Write tables, figures, a record of the request and a page, and print the tables.

    `missing` says what could not be run, `pictures` are figures that are drawn already.
    """
    rows_of = campaign.rows_of()
    filled = write_tables(campaign, rows_of, out, notes)
    screen = Console()
    for table in filled:
        (screen if screen.is_terminal else Console(width=FILE_WIDTH)).print(on_screen(table))
    named = [NamedTable(sheet.name, table) for sheet, table in zip(campaign.sheets, filled, strict=True)]
    drawn = [*pictures, *write_figures(campaign.sheets, rows_of, out)]
    about = write_record(out, request, campaign)
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
