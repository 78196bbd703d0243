"""Options that several commands share, and the groups in which `--help` shows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repeat_xai.data.content_keys import Check
from repeat_xai.data.images import ImageProtocol
from repeat_xai.encoders.huggingface_model import MODEL_POOLS
from repeat_xai.experiments.measures import metrics_with_draws
from repeat_xai.methods.repeat import Estimator
from repeat_xai.metrics.detection import AGGREGATES

if TYPE_CHECKING:
    from typer import Context as Context
else:
    Context = typer.Context.__base__
    """The class of the contexts that commands are given. Typer's own name is that of a subclass, which none has."""

WHAT, HOW, BUDGET, OUTPUT, WHERE, ADVANCED = (
    "What to explain",
    "How to explain it",
    "Budget",
    "Output",
    "Where to run it",
    "Advanced",
)


def given(context: Context) -> list[str]:
    """Return the names of the options that were given on the command line, in their order in the help."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def listed(names: Iterable[str], last: str = "or") -> str:
    """Return names as a sentence lists them.

    >>> listed(["mean", "black", "blur"]), listed(["lime"])
    ('mean, black or blur', 'lime')
    """
    *others, end = names
    return f"{', '.join(others)} {last} {end}" if others else end


EncoderOption = Annotated[
    str,
    typer.Option(
        help="The encoder, a network that turns an image into a vector, its code: efficientnet_lite0 (which comes with "
        "this package), torchvision:NAME, timm:NAME, hf:NAME_OR_FOLDER, open_clip:NAME or onnx:FILE.",
        rich_help_panel=WHAT,
    ),
]
Encoders = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=WEIGHTS]",
        help="An encoder, by default efficientnet_lite0. WEIGHTS is a file of weights, the name of published ones, or "
        "'random' for an untrained network. May be given several times.",
        rich_help_panel=WHAT,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="A local file of weights (safetensors or a state dict), the name of published weights of torchvision or "
        "open_clip, or 'random' for an untrained network. By default, "
        "the published weights; an open_clip model with several sets of them needs a choice.",
        rich_help_panel=WHAT,
    ),
]
Pool = Annotated[
    str | None,
    typer.Option(
        help=f"How the encoder's features become one code: {listed(MODEL_POOLS)}. By default, this is done as is "
        "usual for the encoder.",
        rich_help_panel=ADVANCED,
    ),
]
Size = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Side of the encoder's square input, in pixels. By default, this is the encoder's own size.",
        rich_help_panel=ADVANCED,
    ),
]
Protocol = Annotated[
    ImageProtocol,
    typer.Option(
        help="How photos are prepared: as for the encoder's training (encoder), or squeezed to 224×224 pixels without "
        "a crop, as in the paper (paper).",
        rich_help_panel=ADVANCED,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        help="Device that the encoder runs on: auto (a GPU if there is one), cpu or cuda.", rich_help_panel=WHERE
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Seed of all random numbers: the same seed gives the same results.", rich_help_panel=HOW),
]
Masks = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of masks, which hide random parts of an image, for RELAX and for each repeat of REPEAT. With "
        "more, repeats agree more, so fewer pixels are undecided. The fast estimator does not run these repeats, but "
        "estimates their votes.",
        rich_help_panel=BUDGET,
    ),
]
Repeats = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of repeats, each of which votes on every pixel. More measure the share of votes more exactly. The "
        "fast estimator makes its estimate as accurate as so many repeats, without running them.",
        rich_help_panel=BUDGET,
    ),
]
EstimatorOption = Annotated[
    Estimator,
    typer.Option(
        help="How REPEAT finds the votes of its repeats: by an estimate from one set of masks (fast), or by running "
        "every repeat (exact).",
        rich_help_panel=BUDGET,
    ),
]
Passes = Annotated[
    int,
    typer.Option(
        min=2,
        help="Number of passes, each with a changed image or encoder, that give an uncertainty to methods without "
        "one of their own.",
        rich_help_panel=ADVANCED,
    ),
]
Aggregate = Annotated[
    str,
    typer.Option(
        help=f"How a map of uncertainty becomes one number for the image: {listed(AGGREGATES)}.",
        rich_help_panel=ADVANCED,
    ),
]
DrawsOption = Annotated[
    int,
    typer.Option(
        min=1,
        help=f"Number of disturbed copies of each image for the metrics {listed(sorted(metrics_with_draws()), 'and')}.",
        rich_help_panel=ADVANCED,
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
