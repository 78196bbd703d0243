"""The command `repeat-xai demo` explains the included photos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.cli import options
from repeat_xai.cli.explain_progress import explain_all
from repeat_xai.cli.options import OUTPUT
from repeat_xai.data.image_files import SAMPLES, sample_path
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.methods.repeat import Repeat
from repeat_xai.output.results_folder import ResultsFolder


def demo(
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.", rich_help_panel=OUTPUT)] = Path(
        "demo"
    ),
) -> None:
    """Explain four photos that come with scikit-image, by the encoder that comes with this package.

    No internet connection is needed.
    """
    folder = ResultsFolder(folder=out, encoder=load_encoder("efficientnet_lite0"), method=Repeat(), seed=seed)
    status = explain_all([sample_path(name) for name in SAMPLES], [folder], out, as_json=False)
    if status == 0:
        typer.echo(f"The pictures are in {out.resolve()}")
    raise typer.Exit(status)
