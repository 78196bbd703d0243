"""Options that several commands share, and the groups in which `--help` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.data.content_keys import Check
from repeat_xai.data.images import ImageProtocol
from repeat_xai.methods.repeat import Estimator

WHAT, HOW, BUDGET, OUTPUT, WHERE, ADVANCED = (
    "What to explain",
    "How to explain it",
    "Budget",
    "Output",
    "Where to run it",
    "Advanced",
)

Encoder = Annotated[
    str,
    typer.Option(
        help="The encoder: efficientnet_lite0, torchvision:NAME, timm:NAME, hf:NAME_OR_FOLDER or onnx:FILE.",
        rich_help_panel=WHAT,
    ),
]
Encoders = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=WEIGHTS]",
        help="An encoder, by default efficientnet_lite0; may be given several times.",
        rich_help_panel=WHAT,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="A local file of weights (safetensors or a state dict), or 'random' for an untrained network. By default "
        "the encoder's published weights.",
        rich_help_panel=WHAT,
    ),
]
Pool = Annotated[
    str | None,
    typer.Option(
        help="How the encoder's features become one code: avg, max, cls, flatten, none or head. By default the "
        "encoder's own.",
        rich_help_panel=ADVANCED,
    ),
]
Size = Annotated[
    int | None,
    typer.Option(
        min=1, help="Side of the square input in pixels; by default the encoder's own.", rich_help_panel=ADVANCED
    ),
]
Protocol = Annotated[
    ImageProtocol,
    typer.Option(
        help="How photos are prepared: as the encoder was trained (encoder), or squeezed to 224×224 pixels without a "
        "crop (paper).",
        rich_help_panel=ADVANCED,
    ),
]
Device = Annotated[
    str, typer.Option(help="Where the encoder runs: auto (a GPU if there is one), cpu or cuda.", rich_help_panel=WHERE)
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Seed of all random numbers: the same seed gives the same results.", rich_help_panel=HOW),
]
Masks = Annotated[int, typer.Option(min=1, help="Number of masks of each repeat.", rich_help_panel=BUDGET)]
Repeats = Annotated[int, typer.Option(min=1, help="Number of repeats.", rich_help_panel=BUDGET)]
EstimatorOption = Annotated[
    Estimator,
    typer.Option(
        help="How REPEAT's votes are found: estimated from one set of masks (fast), or by running all repeats (exact).",
        rich_help_panel=BUDGET,
    ),
]
Passes = Annotated[
    int,
    typer.Option(
        min=2, help="Number of passes for methods without uncertainty of their own.", rich_help_panel=ADVANCED
    ),
]
Aggregate = Annotated[
    str,
    typer.Option(
        help="How a map's uncertainty becomes one number for the image: mean, median, top or entropy.",
        rich_help_panel=ADVANCED,
    ),
]
Draws = Annotated[
    int,
    typer.Option(
        min=1, help="Disturbances of each image for local_lipschitz and max_sensitivity.", rich_help_panel=ADVANCED
    ),
]
DataRoot = Annotated[
    Path, typer.Option(help="Folder in which datasets lie, arranged as torchvision expects.", rich_help_panel=WHAT)
]
Download = Annotated[
    bool, typer.Option("--download", help="Download datasets that are missing.", rich_help_panel=ADVANCED)
]
CheckImages = Annotated[
    Check,
    typer.Option(
        "--check",
        help="How a changed image is recognised: by the time and size of its file (time), or by its content (content), "
        "for which every file is read.",
        rich_help_panel=ADVANCED,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each image.", rich_help_panel=OUTPUT)]
