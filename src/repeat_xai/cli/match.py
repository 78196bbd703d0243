"""The command `repeat-xai match` finds out why two images match, and writes the results to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from repeat_xai.cli import options
from repeat_xai.cli.explain_progress import expect_size, interruptible, progress_bar
from repeat_xai.cli.options import ADVANCED, BUDGET, HOW, OUTPUT
from repeat_xai.encoders.calls import counting
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.engine.masks import Grid
from repeat_xai.errors import in_one_line
from repeat_xai.methods.match import MAX_CELLS, MAX_MASKS, expect_matching
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.output.figures.captions import movement
from repeat_xai.output.match_results import MatchFolder, MatchOutcome
from repeat_xai.seeds import expect_seed
from repeat_xai.types import Match
from repeat_xai.types.match import expect_level


def match(
    a: Annotated[Path, typer.Argument(metavar="A", readable=False, help="The first image file.")],
    b: Annotated[Path, typer.Argument(metavar="B", readable=False, help="The second image file.")],
    *,
    encoder: options.EncoderOption = "efficientnet_lite0",
    weights: options.Weights = None,
    level: Annotated[
        float,
        typer.Option(
            help="Probability, above 0.5 and below 1, that none of the matches called certain is wrong. It is also the "
            "share of the votes from which a pixel counts as certainly important.",
            rich_help_panel=HOW,
        ),
    ] = 0.95,
    seed: options.Seed = 0,
    budget: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_MASKS,
            help="Number of masks for each image. It is rounded up to a multiple of 128, at least 256, for 7×7 cells.",
            rich_help_panel=BUDGET,
        ),
    ] = 512,
    masks: options.Masks = 1000,
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.", rich_help_panel=OUTPUT)],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON about the match.", rich_help_panel=OUTPUT)
    ] = False,
    device: options.Device = "auto",
    pool: options.Pool = None,
    size: options.Size = None,
    protocol: options.Protocol = "encoder",
    cells: Annotated[
        int,
        typer.Option(
            min=2,
            max=MAX_CELLS,
            help="Number of cells per side of the grid that divides both images into parts.",
            rich_help_panel=ADVANCED,
        ),
    ] = 7,
) -> None:
    """Show why an encoder finds two images similar, and which part of one goes with which part of the other.

    REPEAT hides random parts of both images and compares all changed copies of one with all changed copies of the
    other. Only matches that are certain, with one error probability for all pairs of parts together, are reported.

    The results folder gets a picture with lines between the strongest certain matches (match.png), a panel for each
    image (a.png and b.png), the match itself (match.npz) and a record of how it was made (match.json).
    """
    expect_level(level)
    expect_seed(seed)
    expect_size(protocol, size)
    method = Repeat(base=Relax(masks=masks, grid=Grid(cells=cells)), budget=budget)
    expect_matching(method)
    loaded = load_encoder(encoder, weights=weights, pool=pool, size=size, device=device)
    folder = MatchFolder(folder=out, encoder=loaded, method=method, protocol=protocol, level=level, seed=seed)
    with interruptible(), progress_bar() as progress, counting(lambda made: progress.advance(task, made)):
        task = progress.add_task("match", total=2 * method.fast_estimator.calls)
        outcome = folder.fill(a, b)
    match = Match.load(outcome.files.match)
    for explanation, path in ((match.a, a), (match.b, b)):
        if (note := movement(explanation)).warning:
            typer.echo(in_one_line(f"repeat-xai: {path}: {note}"), err=True)
    typer.echo(json.dumps(_json_line(outcome, a, b)) if as_json else in_one_line(_line(outcome)))


def _line(outcome: MatchOutcome) -> str:
    """Return what is printed of a match for people."""
    record = outcome.record
    cost = f"{record['encoder_calls']:,} encoder calls, {record['seconds']:.1f} s"
    certain = f"{len(record['matches']):,} of {record['pairs']:,} pairs of parts certainly go together"
    return f"{outcome.files.lines}: {certain} ({'already done' if outcome.already_done else cost})"


def _json_line(outcome: MatchOutcome, a: Path, b: Path) -> dict[str, Any]:
    """Return what `--json` prints of a match."""
    record = outcome.record
    return {
        "a": str(a),
        "b": str(b),
        "already_done": outcome.already_done,
        **{name: str(file) for name, file in outcome.files._asdict().items()},
        **{key: record[key] for key in ("encoder_calls", "seconds", "level", "pairs")},
        "certain": len(record["matches"]),
    }
