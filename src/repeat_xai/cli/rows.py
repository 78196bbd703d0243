"""Rows made before the user's eyes: a bar, and a line for each that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from repeat_xai.experiment.run import Work
from repeat_xai.store import Row


def told(rows: Iterator[Row], work: Sequence[Work]) -> int:
    """Make the rows; how many of them failed."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    failed = 0
    said: set[str] = set()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(len(part.numbers) for part in work))
        for row in rows:
            progress.update(task, advance=1, description=f"{row.encoder} · {row.method or row.measure} · {row.dataset}")
            if row.failure is not None:
                failed += 1
                why = row.failure.replace(row.image, "").lstrip(": ")
                if why not in said:
                    said.add(why)
                    progress.console.print(Text(f"repeat-xai: {row.dataset}, {row.image}: {why}"), soft_wrap=True)
    if failed:
        typer.echo(f"repeat-xai: {failed:,} rows failed; run the same command again to try them anew", err=True)
    return failed


def announced(work: Sequence[Work], rows: int) -> None:
    """What is to be done, on standard error."""
    left = sum(len(part.numbers) for part in work)
    typer.echo(f"repeat-xai: {left:,} of {rows:,} rows to make", err=True)
