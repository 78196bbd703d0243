"""Many images, one after the other: what fails is said and the rest still done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from repeat_xai.calls import listening
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError
from repeat_xai.explain.repeat import Repeat
from repeat_xai.gallery import Files, finished, hang, names_for
from repeat_xai.images import Protocol, load_image
from repeat_xai.importance.relax import Relax
from repeat_xai.provenance import request
from repeat_xai.types import Encoder, Explainer

INTERRUPTED = 130


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """What to do with every image."""

    encoder: Encoder
    method: Repeat | Relax
    protocol: Protocol
    seed: int
    level: float
    out: Path

    @property
    def explainer(self) -> Explainer:
        return self.method if isinstance(self.method, Repeat) else self.method.explain

    @property
    def calls(self) -> int | None:
        """Encoder calls an image, where that is known beforehand."""
        if isinstance(self.method, Relax):
            return self.method.masks + 1
        base = self.method.base
        return self.method.repeats * (base.masks + 1) if isinstance(base, Relax) else None

    def done(self, path: Path, files: Files) -> tuple[dict[str, Any], bool]:
        """The provenance of this image's result, and whether it was there already."""
        image = load_image(path, self.encoder, protocol=self.protocol)
        record = finished(files, request(self.method, self.encoder, image, seed=self.seed), level=self.level)
        if record is not None:
            return record, True
        explanation = self.explainer(self.encoder, image, seed=self.seed)
        hang(explanation, files, level=self.level)
        return dict(explanation.provenance), False


def explain_all(paths: Sequence[Path], job: Job, *, as_json: bool) -> int:
    """Explain each image and say so; the exit status."""
    try:
        job.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{job.out}: cannot be made a folder ({error.strerror}); choose another") from error
    failures = 0
    with _progress() as progress:
        total = job.calls * len(paths) if job.calls else None
        task = progress.add_task("", total=total)
        for number, (path, name) in enumerate(zip(paths, names_for(paths), strict=True), start=1):
            progress.update(task, description=f"{path.name} ({number} of {len(paths)})")
            files = Files.of(job.out, name)
            try:
                with listening(lambda calls: progress.advance(task, calls)):
                    record, before = job.done(path, files)
            except ConfigurationError:
                raise
            except RepeatError as error:
                failures += 1
                _say_failure(progress, path, error, as_json=as_json)
                skipped = True
            except KeyboardInterrupt:
                progress.stop()
                typer.echo("repeat-xai: interrupted; run the same command again to go on", err=True)
                return INTERRUPTED
            else:
                skipped = before
                _say_success(progress, path, files, record, before=before, as_json=as_json)
            if skipped and job.calls:
                total = (total or 0) - job.calls
                progress.update(task, total=total)
    return 1 if failures else 0


def _say_success(
    progress: Progress, path: Path, files: Files, record: dict[str, Any], *, before: bool, as_json: bool
) -> None:
    if as_json:
        where = {part: str(file) for part, file in files._asdict().items()}
        line = {"image": str(path), "already_done": before, **where}
        _print(progress, json.dumps(line | {k: record[k] for k in ("encoder_calls", "seconds", "seed")}))
    elif before:
        _print(progress, f"{path}: already done, see {files.panel}")
    else:
        _print(
            progress, f"{path}: {files.panel} ({record['encoder_calls']:,} encoder calls, {record['seconds']:.1f} s)"
        )


def _say_failure(progress: Progress, path: Path, error: RepeatError, *, as_json: bool) -> None:
    text = str(error)
    message = text if text.startswith(str(path)) else f"{path}: {text}"
    if as_json:
        _print(progress, json.dumps({"image": str(path), "error": message}))
    progress.console.print(Text(f"repeat-xai: {message}"), soft_wrap=True)


def _print(progress: Progress, line: str) -> None:
    """To standard output; the bar, if one is showing, lives on standard error."""
    if progress.console.is_terminal:
        progress.console.file.flush()
    typer.echo(line)


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Calls(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@final
class _Calls(ProgressColumn):
    """Encoder calls made, of how many, and how fast."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        rate = f" {speed:.0f}/s" if speed else ""
        total = f"/{task.total:,.0f}" if task.total else ""
        return Text(f"{task.completed:,.0f}{total} calls{rate}")
