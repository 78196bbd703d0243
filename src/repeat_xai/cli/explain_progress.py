"""Images are explained with a progress bar and a line for each image."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.output.figures.captions import rounding
from repeat_xai.output.page import expect_replaceable_page, write_explain_page
from repeat_xai.output.results_folder import ImageOutcome, ResultsFolder, compare, expect_same_methods
from repeat_xai.types import Explanation

JsonLine = Callable[[ImageOutcome], dict[str, Any]]
"""A function that returns what `--json` prints for an image that was explained."""


def expect_size(protocol: ImageProtocol, size: int | None) -> None:
    """Refuse a size that would have no effect under the protocol."""
    if protocol == "paper" and size not in (None, PAPER_SIDE):
        raise ConfigurationError(
            f"--protocol paper shows encoders {PAPER_SIDE}×{PAPER_SIDE} pixels; --size is for --protocol encoder"
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Print how to go on when the block is interrupted, and end the command; finished results stay."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("repeat-xai: interrupted; run the same command again to go on", err=True)
        raise typer.Exit(INTERRUPTED) from None


def explain_all(paths: Sequence[Path], folders: Sequence[ResultsFolder], out: Path, *, as_json: bool) -> int:
    """Explain images by one method or several, write comparisons and the page, and return the exit status."""
    failed = False
    expect_replaceable_page(out)
    expect_same_methods(out, folders)
    for folder in folders:
        folder.expect_same_settings()
    remove_old_drafts(out)
    with interruptible():
        json_line = explain_json if as_json else None
        outcomes = [list(fill_with_progress(paths, folder, json_line=json_line)) for folder in folders]
        for by_method in zip(*outcomes, strict=True):
            if len(by_method) > 1 and not any(outcome.error for outcome in by_method):
                failed |= not _write_comparison(by_method, out, as_json=as_json)
        print_page(write_explain_page(outcomes, out), as_json=as_json)
    return 1 if failed or any(outcome.error for by_image in outcomes for outcome in by_image) else 0


def print_left_out(lines: Iterable[str]) -> None:
    """Print which files of the searched folders are left out."""
    for line in lines:
        typer.echo(f"repeat-xai: {line}", err=True)


def print_page(page: Path | None, *, as_json: bool = False) -> None:
    """Print where the page is, unless the output is for another program."""
    if page is not None and not as_json:
        typer.echo(f"Open {page.resolve()} in a browser to look into them")


def _write_comparison(outcomes: Sequence[ImageOutcome], out: Path, *, as_json: bool) -> bool:
    """Draw the results of several methods side by side, and return whether that succeeded."""
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
    paths: Sequence[Path], folder: ResultsFolder, *, json_line: JsonLine | None
) -> Generator[ImageOutcome, None, None]:
    """Explain images into a folder, print a line for each when it is done, and yield its outcome.

    `json_line` makes the line of an image that was explained; None prints lines for people.
    """
    if not paths:  # no folder is made for no images
        return
    expected = ExpectedCalls(folder.method, len(paths))
    with progress_bar() as progress, counting(lambda made: progress.advance(task, made)):
        task = progress.add_task(f"1 of {len(paths)}", total=expected.total)
        for number, outcome in enumerate(folder.fill(paths), start=1):
            _print_outcome(progress, outcome, json_line=json_line)
            expected.add(outcome)
            progress.update(task, description=f"{min(number + 1, len(paths))} of {len(paths)}", total=expected.total)
            yield outcome


@final
@dataclass
class ExpectedCalls:
    """The number of encoder calls that all images will take, estimated from the images that are done."""

    method: Method
    images: int
    """Images that are not done yet."""
    explained: int = 0
    calls: int = 0
    """Calls for the images that were explained in this run."""

    def add(self, outcome: ImageOutcome) -> None:
        """Count an image that is done; one that was done before, or failed, says nothing about the others."""
        self.images -= 1
        if outcome.record is not None and not outcome.already_done:
            self.explained += 1
            self.calls += outcome.record["encoder_calls"]

    @property
    def total(self) -> float | None:
        """Calls of this run, done and to come; None where nothing is known yet, as before an automatic budget ends."""
        automatic = isinstance(self.method, Repeat) and self.method.finds_budget
        per_image = self.calls / self.explained if self.explained else None if automatic else self.method.calls
        return None if per_image is None else float(self.calls + per_image * self.images)


def explain_json(outcome: ImageOutcome) -> dict[str, Any]:
    """Return what `explain --json` prints for an image that was explained."""
    assert outcome.files is not None
    assert outcome.record is not None
    explanation = outcome.files.explanation()
    uncertainty = explanation.uncertainty
    return {
        "image": str(outcome.path),
        "already_done": outcome.already_done,
        **{part: str(file) for part, file in outcome.files._asdict().items()},
        **{key: outcome.record[key] for key in ("encoder_calls", "seconds", "seed")},
        "mean_uncertainty": None if uncertainty is None else uncertainty.double().mean().item(),
        "share_decided": share_decided(explanation, outcome.record["level"]),
        "code_movement": explanation.code_movement,
        "is_of_flat_photo": explanation.is_of_flat_photo,
        "budget": outcome.record.get("budget", {}).get("masks"),
    }


def share_decided(explanation: Explanation, level: float) -> float | None:
    """Return the share of pixels whose verdict is not "undecided"; None for a method without votes."""
    if explanation.vote_share is None:
        return None
    return (explanation.verdict(level) != 0).double().mean().item()


def _print_outcome(progress: Progress, outcome: ImageOutcome, *, json_line: JsonLine | None) -> None:
    """Print the line of one image, and beside it what a reader must know of its results."""
    path, files, record = outcome.path, outcome.files, outcome.record or {}
    name = in_one_line(str(path))
    if outcome.flaw:
        _warn(progress, f"{outcome.flaw}, made again")
    if outcome.error is not None:
        text = str(outcome.error)
        text = text if text.startswith(name) else f"{name}: {text}"
        if json_line is not None:
            _print(progress, json.dumps({"image": str(path), "error": text}))
        _warn(progress, text)
    elif json_line is not None and files is not None:
        _print(progress, json.dumps(json_line(outcome)))
    elif files is not None:
        cost = f"{record['encoder_calls']:,} encoder calls{rounding(record)}, {record['seconds']:.1f} s"
        _print(progress, in_one_line(f"{path}: {files.panel} ({'already done' if outcome.already_done else cost})"))
    if outcome.warning:
        _warn(progress, f"{name}: {outcome.warning}")


def _warn(progress: Progress, text: str) -> None:
    """Print a line to standard error."""
    progress.console.print(Text(in_one_line(f"repeat-xai: {text}")), soft_wrap=True)


def _print(progress: Progress, line: str) -> None:
    """Print a line to standard output, above the bar where both are on the same screen."""
    if sys.stdout.isatty() and progress.console.is_terminal:
        progress.console.print(Text(line), soft_wrap=True)
    else:
        typer.echo(line)


def progress_bar() -> Progress:
    """Return a progress bar that is shown on terminals only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), _CallsColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not console.is_terminal)


@final
class _CallsColumn(ProgressColumn):
    """Shows encoder calls made, of how many, and how many per second."""

    def render(self, task: Task) -> Text:
        rate = f" {task.speed:.0f}/s" if task.speed else ""
        total = f"/{task.total:,.0f}" if task.total else ""
        return Text(f"{task.completed:,.0f}{total} calls{rate}")
