"""Rows made before the user's eyes: what it will take, a bar, and a line for each failure."""

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
"""The part of an image's key that tells whether the image has changed."""
LONG = 60.0
"""Seconds from which it is said how long it will take."""


def filled(campaign: Campaign, executor: Executor) -> int:
    """Make the missing rows, one image of each setting first; return how many failed or are gone again."""
    work = campaign.missing_work()
    typer.echo(f"repeat-xai: {_rows(work):,} of {campaign.row_count:,} rows to make", err=True)
    first, rest = split_first_images(work)
    awaited = {campaign.worker.keys(*one)[0]: len(every.numbers) for one, every in zip(first, work, strict=True)}
    probed, failed = [], 0
    with _bar(_rows(work)) as tell:
        for row in campaign.make_rows([*first, *rest], executor):
            tell(row)
            failed += row.failure is not None
            if (many := awaited.pop(row.key, None)) is not None:
                probed.append((row, many))
                if not awaited:
                    _foretell(estimate_cost(probed, concurrency=executor.concurrency))
    if failed:
        typer.echo(f"repeat-xai: {failed:,} rows failed; run the same command again to try them anew", err=True)
    lost = _rows(campaign.missing_work()) - failed
    if lost > 0:
        line = f"{lost:,} rows or their maps are gone from {campaign.store.url} since they were made"
        typer.echo(f"repeat-xai: {line}; run the same command again to make them anew", err=True)
    return failed + max(0, lost)


def _foretell(whole: EstimatedCost) -> None:
    if whole.seconds > LONG:
        length = timedelta(seconds=round(whole.seconds))
        line = f"{whole.rows:,} rows, {whole.calls:,} encoder calls, about {length} in all"
        typer.echo(f"repeat-xai: {line}", err=True)


@contextmanager
def _bar(rows: int) -> Iterator[Callable[[Row], None]]:
    """A bar on a terminal; each reason for a failure is said once."""
    console = Console(stderr=True)
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times)
    said: set[str] = set()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=rows)

        def tell(row: Row) -> None:
            progress.update(task, advance=1, description=f"{row.encoder} · {row.method or row.measure} · {row.dataset}")
            why = (row.failure or "").replace(in_one_line(row.image), "").lstrip(": ")
            if why and why not in said:
                said.add(why)
                said_of = STAMP.sub("", row.image)
                line = in_one_line(f"repeat-xai: {row.dataset}, {said_of}: {why}")
                progress.console.print(Text(line), soft_wrap=True)

        yield tell


def _rows(work: Sequence[Work]) -> int:
    return sum(len(part.numbers) for part in work)
