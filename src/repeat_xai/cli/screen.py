"""`repeat-xai screen`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from repeat_xai.cli.explain_progress import (
    expect_size,
    fill_with_progress,
    interruptible,
    share_decided,
    tell_left_out,
    tell_of_page,
)
from repeat_xai.data.image_files import find_images
from repeat_xai.data.images import ImageProtocol
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.errors import choose
from repeat_xai.methods.provenance import configuration
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.output.page import expect_free, screened
from repeat_xai.output.results_folder import ImageOutcome, ResultsFolder
from repeat_xai.output.screening import screen_images, statement


def screen(
    images: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", readable=False, help="Folders of images, or image files.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    reference: Annotated[
        list[Path] | None, typer.Option(help="Images the encoder is known to know; may be given several times.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="efficientnet_lite0, torchvision:NAME, timm:NAME, hf:NAME or onnx:FILE.")
    ] = "efficientnet_lite0",
    weights: Annotated[
        str | None, typer.Option(help="Local safetensors file or state dict; 'random' for an untrained network.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="Which tensor is the representation.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square input, if not the encoder's own.")] = None,
    protocol: Annotated[
        ImageProtocol, typer.Option(help="The encoder's own preprocessing, or the paper's: squeezed to 224×224.")
    ] = "encoder",
    aggregate: Annotated[
        str, typer.Option(help="A map's uncertainty in a number: mean, median, top, entropy.")
    ] = "mean",
    masks: Annotated[int, typer.Option(min=1, help="Masks per repeat.")] = 1000,
    repeats: Annotated[int, typer.Option(min=1, help="How many repeats to be as accurate as.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same scores.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per image.")] = False,
) -> None:
    """Rank images by how uncertain the encoder is about them: a table, a page, a contact sheet, a panel for each."""
    choose("aggregate", aggregate, AGGREGATES)
    expect_free(out)
    expect_size(protocol, size)
    method = Repeat(base=Relax(masks=masks), repeats=repeats)
    gallery = ResultsFolder(
        folder=out / "images",
        encoder=load_encoder(encoder, weights=weights, pool=pool, size=size, device=device),
        method=method,
        protocol=protocol,
        seed=seed,
    )
    known = replace(gallery, folder=out / "reference")
    found = find_images(images, results=out, excluded=reference or ())
    others = find_images(reference or (), results=out)
    tell_left_out((*found.left_out, *others.left_out))
    about = {"method": configuration(method), "encoder": gallery.encoder.name, "aggregate": aggregate, "seed": seed}

    def json_line(outcome: ImageOutcome) -> dict[str, Any]:
        """Return what `--json` says of an image that was explained."""
        assert outcome.files is not None
        explanation = outcome.files.explanation()
        return {
            "image": str(outcome.path),
            "reference": outcome.files.panel.parent == known.folder,
            "uncertainty": AGGREGATES[aggregate](explanation.known_uncertainty).item(),
            "share_decided": share_decided(explanation, gallery.level),
            "panel": str(outcome.files.panel),
        }

    line = json_line if as_json else None
    with (
        interruptible(),
        closing(fill_with_progress(found.images, gallery, json_line=line)) as outcomes,
        closing(fill_with_progress(others.images, known, json_line=line)) as reference_outcomes,
    ):
        result, reference_scores, errors, table = screen_images(
            outcomes, reference_outcomes, out, total=len(found.images), aggregate=aggregate, seed=seed, about=about
        )
        if not as_json:
            typer.echo(f"{statement(result)}: {table}")
        tell_of_page(screened(result, reference_scores, out, failed=errors), as_json=as_json)
    raise typer.Exit(1 if errors else 0)
