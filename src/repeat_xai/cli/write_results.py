"""What became of a campaign, told: tables on screen and in files, figures, and a page of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from repeat_xai.cli.explain_progress import print_page
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.output.campaign_results import figures, record, tables
from repeat_xai.output.page import Written, tabulated
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
    found = campaign.found()
    made = tables(campaign, found, out, notes)
    screen = Console()
    for table in made:
        (screen if screen.is_terminal else Console(width=WIDE)).print(on_screen(table))
    named = [Written(sheet.name, table) for sheet, table in zip(campaign.sheets, made, strict=True)]
    drawn = [*pictures, *figures(campaign.sheets, found, out)]
    about = record(out, asked, campaign)
    typer.echo(f"tables and figures: {out}")
    print_page(tabulated(named, drawn, out, title=title, missing=missing, about=about))
