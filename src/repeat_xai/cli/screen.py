"""The command `repeat-xai screen` ranks images by their uncertainty, to find those that the encoder may not know."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from repeat_xai.cli import options
from repeat_xai.cli.explain_progress import (
    expect_size,
    fill_with_progress,
    interruptible,
    print_left_out,
    print_page,
    share_decided,
)
from repeat_xai.cli.options import OUTPUT, WHAT
from repeat_xai.data.image_files import find_images
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.errors import choose
from repeat_xai.methods.provenance import configuration
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.output.page import expect_replaceable_page, write_screen_page
from repeat_xai.output.results_folder import ImageOutcome, ResultsFolder
from repeat_xai.output.screening import expect_own_table, screen_images, statement
from repeat_xai.seeds import expect_seed


def screen(
    images: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", readable=False, help="Folders of images, or single image files.")
    ],
    *,
    known: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of images, or single image, that the encoder is known to handle well: the reference images "
            "that all others are compared with. May be given several times.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    encoder: options.EncoderOption = "efficientnet_lite0",
    weights: options.Weights = None,
    seed: options.Seed = 0,
    masks: options.Masks = 1000,
    repeats: options.Repeats = 10,
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.", rich_help_panel=OUTPUT)],
    as_json: options.Json = False,
    device: options.Device = "auto",
    pool: options.Pool = None,
    size: options.Size = None,
    protocol: options.Protocol = "encoder",
    aggregate: options.Aggregate = "mean",
) -> None:
    """Rank images by how uncertain REPEAT's maps of them are, to find those that the encoder may not know.

    A place near the top is a hint, not proof: plain or blurred images are there too. In tests on four encoders,
    uncertainty separated unknown images with an AUROC between 0.43, below chance, and 0.91. A score that compares codes
    with those of known images usually does better: the metric codes of the command evaluate.

    The results folder gets a table (CSV and Parquet), a page, a picture of the most and the least uncertain images, and
    a panel for each image. An interrupted run goes on when the same command is run again.
    """
    choose("aggregate", aggregate, AGGREGATES)
    expect_seed(seed)
    expect_replaceable_page(out)
    expect_size(protocol, size)
    method = Repeat(base=Relax(masks=masks), repeats=repeats)
    folder = ResultsFolder(
        folder=out / "images",
        encoder=load_encoder(encoder, weights=weights, pool=pool, size=size, device=device),
        method=method,
        protocol=protocol,
        seed=seed,
    )
    reference = replace(folder, folder=out / "reference")
    expect_own_table(out)
    for used in (folder, reference):
        used.expect_same_settings()
    searched = find_images(images, results=out, excluded=known or ())
    others = find_images(known or (), results=out)
    print_left_out((*searched.left_out, *others.left_out))
    about = {"method": configuration(method), "encoder": folder.encoder.name, "aggregate": aggregate, "seed": seed}

    def json_line(outcome: ImageOutcome) -> dict[str, Any]:
        """Return what `--json` says of an image that was explained."""
        assert outcome.files is not None
        explanation = outcome.files.explanation()
        return {
            "image": str(outcome.path),
            "reference": outcome.files.panel.parent == reference.folder,
            "uncertainty": AGGREGATES[aggregate](explanation.required_uncertainty).item(),
            "share_decided": share_decided(explanation, folder.level),
            "panel": str(outcome.files.panel),
        }

    line = json_line if as_json else None
    with (
        interruptible(),
        closing(fill_with_progress(searched.images, folder, json_line=line)) as outcomes,
        closing(fill_with_progress(others.images, reference, json_line=line)) as reference_outcomes,
    ):
        result, reference_scores, failures, table = screen_images(
            outcomes, reference_outcomes, out, total=len(searched.images), aggregate=aggregate, seed=seed, about=about
        )
        if not as_json:
            typer.echo(f"{statement(result)}: {table}")
        print_page(write_screen_page(result, reference_scores, out, failed=failures), as_json=as_json)
    raise typer.Exit(1 if failures else 0)
