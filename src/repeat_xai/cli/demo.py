"""`repeat-xai demo`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.cli.run import explain_all
from repeat_xai.encoders import load_encoder
from repeat_xai.explain.repeat import Repeat
from repeat_xai.gallery import Gallery

PHOTOS = ("chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png")


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same maps.")] = 0,
) -> None:
    """Explain four photos that come with scikit-image, with the embedded encoder: no network needed."""
    gallery = Gallery(folder=out, encoder=load_encoder("efficientnet_lite0"), method=Repeat(), seed=seed)
    status = explain_all([_photos() / name for name in PHOTOS], [gallery], out, as_json=False)
    if status == 0:
        typer.echo(f"The pictures are in {out.resolve()}")
    raise typer.Exit(status)


def _photos() -> Path:
    package = find_spec("skimage")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "data"
