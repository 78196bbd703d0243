"""Images explained before the user's eyes: a bar, and a line for each image."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from repeat_xai.cli import INTERRUPTED
from repeat_xai.data.images import PAPER_SIDE, ImageProtocol
from repeat_xai.encoders.calls import counting
from repeat_xai.errors import ConfigurationError, RepeatError, in_one_line
from repeat_xai.files.atomic import remove_old_drafts
from repeat_xai.output.page import expect_free, explained
from repeat_xai.output.results_folder import ImageOutcome, ResultsFolder, compare
from repeat_xai.types import Explanation

JsonLine = Callable[[ImageOutcome], dict[str, Any]]
"""A function that returns what `--json` prints of an image that was explained."""


def expect_size(protocol: ImageProtocol, size: int | None) -> None:
    """Refuse a size that the protocol would not heed."""
    if protocol == "paper" and size not in (None, PAPER_SIDE):
        raise ConfigurationError(
            f"--protocol paper shows encoders {PAPER_SIDE}×{PAPER_SIDE} pixels; --size is for --protocol encoder"
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """End the command in a line that says how to go on when it is interrupted; what is done stays done."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("repeat-xai: interrupted; run the same command again to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None


def explain_all(paths: Sequence[Path], folders: Sequence[ResultsFolder], out: Path, *, as_json: bool) -> int:
    """Fill the galleries, tell of each image, draw those of several side by side, write the page; the exit status."""
    failed = False
    expect_free(out)
    remove_old_drafts(out)
    with interruptible():
        json_line = explain_json if as_json else None
        found = [list(fill_with_progress(paths, gallery, json_line=json_line)) for gallery in folders]
        for each in zip(*found, strict=True):
            if len(each) > 1 and not any(outcome.error for outcome in each):
                failed |= not _compared(each, out, as_json=as_json)
        tell_of_page(explained(found, out), as_json=as_json)
    return 1 if failed or any(outcome.error for outcomes in found for outcome in outcomes) else 0


def tell_left_out(lines: Iterable[str]) -> None:
    """Print which files of the folders that were searched are left out."""
    for line in lines:
        typer.echo(f"repeat-xai: {line}", err=True)


def tell_of_page(page: Path | None, *, as_json: bool = False) -> None:
    """Where to look, for a person."""
    if page is not None and not as_json:
        typer.echo(f"Open {page.resolve()} in a browser to look into them")


def _compared(outcomes: Sequence[ImageOutcome], out: Path, *, as_json: bool) -> bool:
    path = outcomes[0].path
    try:
        picture = compare(outcomes, out)
    except RepeatError as error:
        typer.echo(f"repeat-xai: {error}", err=True)
        return False
    line = {"image": str(path), "comparison": str(picture)}
    typer.echo(json.dumps(line) if as_json else in_one_line(f"{path}: {picture}"))
    return True


def fill_with_progress(
    paths: Sequence[Path], gallery: ResultsFolder, *, json_line: JsonLine | None
) -> Generator[ImageOutcome, None, None]:
    """Fill a gallery, print a line for each image when it is done, and yield its outcome.

    `json_line` makes the line of an image that was explained; None: lines are for people to read.
    """
    if not paths:  # no folder is made for no images
        return
    calls = gallery.method.calls or 0
    with _progress() as progress, counting(lambda made: progress.advance(task, made)):
        task = progress.add_task(f"1 of {len(paths)}", total=calls * len(paths) or None)
        for number, outcome in enumerate(gallery.fill(paths), start=1):
            _tell(progress, outcome, json_line=json_line)
            progress.update(task, description=f"{min(number + 1, len(paths))} of {len(paths)}")
            used = outcome.record["encoder_calls"] if outcome.record else calls
            progress.update(task, total=progress.tasks[0].completed + used * (len(paths) - number) or None)
            yield outcome


def explain_json(outcome: ImageOutcome) -> dict[str, Any]:
    """Return what `explain --json` says of an image that was explained."""
    assert outcome.files is not None
    assert outcome.record is not None
    where = {part: str(file) for part, file in outcome.files._asdict().items()}
    cost = {key: outcome.record[key] for key in ("encoder_calls", "seconds", "seed")}
    explanation = outcome.files.explanation()
    uncertainty = explanation.uncertainty
    mean = math.nan if uncertainty is None else uncertainty.double().mean().item()
    return {
        "image": str(outcome.path),
        "already_done": outcome.before,
        **where,
        **cost,
        "mean_uncertainty": None if math.isnan(mean) else mean,
        "share_decided": share_decided(explanation, outcome.record["level"]),
    }


def share_decided(explanation: Explanation, level: float) -> float | None:
    """Return the share of pixels whose verdict is not "undecided"; None for a method without votes."""
    if explanation.vote_share is None:
        return None
    return (explanation.verdict(level) != 0).double().mean().item()


def _tell(progress: Progress, outcome: ImageOutcome, *, json_line: JsonLine | None) -> None:
    path, files, record = outcome.path, outcome.files, outcome.record or {}
    name = in_one_line(str(path))
    if outcome.flaw:
        progress.console.print(Text(in_one_line(f"repeat-xai: {outcome.flaw}, made again")), soft_wrap=True)
    if outcome.error is not None:
        text = str(outcome.error)
        text = text if text.startswith(name) else f"{name}: {text}"
        if json_line is not None:
            _print(progress, json.dumps({"image": str(path), "error": text}))
        progress.console.print(Text(f"repeat-xai: {text}"), soft_wrap=True)
    elif json_line is not None and files is not None:
        _print(progress, json.dumps(json_line(outcome)))
    elif files is not None:
        done = f"{record['encoder_calls']:,} encoder calls, {record['seconds']:.1f} s"
        _print(progress, in_one_line(f"{path}: {files.panel} ({'already done' if outcome.before else done})"))


def _print(progress: Progress, line: str) -> None:
    """A line to standard output, above the bar where both are on the same screen."""
    if sys.stdout.isatty() and progress.console.is_terminal:
        progress.console.print(Text(line), soft_wrap=True)
    else:
        typer.echo(line)


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), _Calls(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not console.is_terminal)


@final
class _Calls(ProgressColumn):
    """Encoder calls made, of how many, and how fast."""

    def render(self, task: Task) -> Text:
        rate = f" {task.speed:.0f}/s" if task.speed else ""
        total = f"/{task.total:,.0f}" if task.total else ""
        return Text(f"{task.completed:,.0f}{total} calls{rate}")
