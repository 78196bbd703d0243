"""Rows are made with an estimate of the time they take, a progress bar, and a line for each kind of failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from repeat_xai.errors import in_one_line
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.executors.executor import Executor, Work
from repeat_xai.experiments.making_rows import EstimatedCost, estimate_cost, split_first_images
from repeat_xai.experiments.store.row_schema import Row

STAMP = re.compile(r" \((\d+ bytes, \d+|sha256 [0-9a-f-]+)\)$")
"""The part of an image's key that shows whether the image has changed."""
LONG_RUN = 60.0
"""Seconds from which the estimated time is printed."""


def make_rows_with_progress(campaign: Campaign, executor: Executor) -> int:
    """Make the missing rows, one image of each setting first, and return how many failed or have vanished."""
    work = campaign.missing_work()
    typer.echo(f"repeat-xai: {_rows(work):,} of {campaign.row_count:,} rows to make", err=True)
    first, rest = split_first_images(work)
    first_rows = {campaign.worker.keys(*probe)[0]: len(part.numbers) for probe, part in zip(first, work, strict=True)}
    probed, failed = [], 0
    with _bar(_rows(work)) as print_row:
        for row in campaign.make_rows([*first, *rest], executor):
            print_row(row)
            failed += row.failure is not None
            if (images := first_rows.pop(row.key, None)) is not None:
                probed.append((row, images))
                if not first_rows:
                    _print_cost(estimate_cost(probed, concurrency=executor.concurrency))
    if failed:
        rows, them = ("row", "it") if failed == 1 else ("rows", "them")
        typer.echo(f"repeat-xai: {failed:,} {rows} failed; run the same command again to try {them} again", err=True)
    vanished = _rows(campaign.missing_work()) - failed
    if vanished > 0:
        line = f"{vanished:,} rows or their maps are gone from {campaign.store.url} since they were made"
        typer.echo(f"repeat-xai: {line}; run the same command again to make them again", err=True)
    return failed + max(0, vanished)


def _print_cost(cost: EstimatedCost) -> None:
    """Print how long a long run will take."""
    if cost.seconds > LONG_RUN:
        duration = timedelta(seconds=round(cost.seconds))
        line = f"{cost.rows:,} rows, {cost.calls:,} encoder calls, about {duration} in all"
        typer.echo(f"repeat-xai: {line}", err=True)


@contextmanager
def _bar(rows: int) -> Iterator[Callable[[Row], None]]:
    """Yield a function that advances the bar by a row and prints its failure; each reason is printed once."""
    console = Console(stderr=True)
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    printed: set[str] = set()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=rows)

        def print_row(row: Row) -> None:
            progress.update(task, advance=1, description=f"{row.encoder} · {row.method or row.measure} · {row.dataset}")
            reason = (row.failure or "").replace(in_one_line(row.image), "").lstrip(": ")
            if reason and reason not in printed:
                printed.add(reason)
                image = STAMP.sub("", row.image)
                line = in_one_line(f"repeat-xai: {row.dataset}, {image}: {reason}")
                progress.console.print(Text(line), soft_wrap=True)

        yield print_row


def _rows(work: Sequence[Work]) -> int:
    """Return the number of rows that the work makes."""
    return sum(len(part.numbers) for part in work)
