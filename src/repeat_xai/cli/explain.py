"""The command `repeat-xai explain` explains images and writes the results to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from repeat_xai.cli import options
from repeat_xai.cli.explain_progress import expect_size, explain_all, print_left_out
from repeat_xai.cli.options import ADVANCED, BUDGET, HOW, OUTPUT, listed
from repeat_xai.cli.target_options import TargetNotOption, TargetOption, TargetTextOption, chosen_target
from repeat_xai.data.image_files import find_images
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.encoders.torch_encoder import Precision, Runtime
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.engine.masks import MAX_CELLS, Grid, Style
from repeat_xai.errors import ConfigurationError, choose, shown
from repeat_xai.methods.bases.base_options import CHANNELS, FILLS
from repeat_xai.methods.bases.features import FEATURES
from repeat_xai.methods.method_names import METHODS, BaseOptions, MethodSettings, split_names
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.methods.votes import Votes
from repeat_xai.output.results_folder import ResultsFolder


def _methods_with(option: str, last: str = "or") -> str:
    """Return the names of the methods that have an option, as help lists them."""
    return listed((name for name, method in METHODS.items() if hasattr(method, option)), last)


def explain(
    context: options.Context,
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE", readable=False, help="Image files, or folders of images.")
    ],
    *,
    encoder: options.EncoderOption = "efficientnet_lite0",
    weights: options.Weights = None,
    method: Annotated[
        str,
        typer.Option(
            help="The method: repeat, relax, saliency or another that `repeat-xai list methods` shows. Several, "
            "separated by commas, are also drawn side by side. With repeat:NAME, REPEAT repeats that method instead of "
            "RELAX; with once:NAME, the method is run once, without uncertainty; repeat:OPTION=VALUE changes the "
            "threshold, repeats or votes of REPEAT.",
            rich_help_panel=HOW,
        ),
    ] = "repeat",
    level: Annotated[
        float,
        typer.Option(
            help="Share of the votes, above 0.5 and at most 1, from which a pixel counts as certainly important, or as "
            "certainly unimportant.",
            rich_help_panel=HOW,
        ),
    ] = 0.95,
    seed: options.Seed = 0,
    budget: Annotated[
        str,
        typer.Option(
            help="Number of masks for each image, for the fast estimator only. It is rounded up to a multiple of 128, "
            "at least 256, for 7×7 cells. With auto, masks are drawn until the estimate is as accurate as --repeats "
            "exact repeats, or the ceiling, 4,096 masks for 7×7 cells, is reached. More measure the votes more "
            "exactly, but do not settle undecided pixels.",
            rich_help_panel=BUDGET,
        ),
    ] = "auto",
    estimator: options.EstimatorOption = "fast",
    masks: options.Masks = 1000,
    repeats: options.Repeats = 10,
    out: Annotated[Path, typer.Option(help="Folder that the results are written to.", rich_help_panel=OUTPUT)],
    as_json: options.Json = False,
    device: options.Device = "auto",
    pool: options.Pool = None,
    size: options.Size = None,
    protocol: options.Protocol = "encoder",
    threshold: Annotated[
        str,
        typer.Option(
            help=f"Rule that finds the value from which a pixel of a map counts as important: {listed(THRESHOLDS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = "mean",
    votes: Annotated[
        Votes,
        typer.Option(
            help="How much a vote counts: as much as the pixel's importance (weighted), or each vote alike (binary).",
            rich_help_panel=ADVANCED,
        ),
    ] = "weighted",
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Error of the importance at which --budget auto stops drawing masks. By default, this is the error of "
            "--repeats exact repeats.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    similarity: Annotated[
        str,
        typer.Option(
            help=f"Kernel that measures how alike two codes are: {listed(KERNELS)}.", rich_help_panel=ADVANCED
        ),
    ] = "cosine",
    cells: Annotated[
        int,
        typer.Option(
            min=2,
            max=MAX_CELLS,
            help="Number of cells per side of the grid that a mask is made from.",
            rich_help_panel=ADVANCED,
        ),
    ] = 7,
    keep: Annotated[
        float, typer.Option(help="Probability that a cell of a mask stays visible.", rich_help_panel=ADVANCED)
    ] = 0.5,
    mask_style: Annotated[
        Style,
        typer.Option(
            help="How a mask is made from its grid: as by the authors of RELAX (relax), or as by those of RISE (rise).",
            rich_help_panel=ADVANCED,
        ),
    ] = "relax",
    perturbation: Annotated[
        str,
        typer.Option(
            help="Change between the passes that give an uncertainty to methods without one of their own: "
            f"{listed(PERTURBATIONS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = "dropout",
    passes: options.Passes = 10,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Number of samples for a map of {_methods_with('samples')}.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Number of points on the path of {_methods_with('steps')}.", rich_help_panel=ADVANCED
        ),
    ] = None,
    fill: Annotated[
        str | None,
        typer.Option(
            help=f"What replaces the pixels that {_methods_with('fill', 'and')} take away: {listed(FILLS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help=f"Parts of an image that {_methods_with('features', 'and')} hide as a whole: {listed(FEATURES)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(
            help="How the attributions of the colour channels become one map, in methods other than REPEAT and RELAX: "
            f"{listed(CHANNELS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    target: TargetOption = None,
    target_text: TargetTextOption = None,
    target_not: TargetNotOption = None,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Number format that the encoder computes in. With auto, this is half precision on a GPU where that "
            "does not change the votes.",
            rich_help_panel=ADVANCED,
        ),
    ] = "auto",
    runtime: Annotated[
        Runtime,
        typer.Option(
            help="Software that runs the encoder. With auto, this is ONNX Runtime on a CPU, and torch on a GPU, "
            "compiled for long runs.",
            rich_help_panel=ADVANCED,
        ),
    ] = "auto",
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of masked copies in a batch. By default, it is chosen to suit the device.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    data_root: Annotated[
        Path, typer.Option(help="Folder that relative paths of images start from.", rich_help_panel=ADVANCED)
    ] = Path(),
) -> None:
    """Show which pixels of an image an encoder's code depends on, and how certain this is for each of them.

    The code is the vector that the encoder turns the image into. REPEAT hides random parts of the image many times,
    measures how the code changes, and lets many repeats of this vote on which pixels are important.

    The results folder gets, for each image, a panel (PNG), the maps (.npz) and a record of how they were made (.json),
    and for all images one page, index.html. An interrupted run goes on when the same command is run again.
    """
    expect_size(protocol, size)
    if not 0.5 < level <= 1:
        raise ConfigurationError(f"level must be above 0.5 and at most 1, not {level}")
    for name, value, known in (("similarity", similarity, KERNELS), ("perturbation", perturbation, PERTURBATIONS)):
        choose(name, value, known)
    if features is not None:
        choose("features", features, FEATURES)
    names = split_names(method)
    relax = Relax(
        masks=masks,
        grid=Grid(cells=cells, keep=keep, style=mask_style),
        similarity=KERNELS[similarity](),
        chunk=chunk,
    )
    repeat = Repeat(
        base=relax,
        estimator=estimator,
        repeats=repeats,
        threshold=threshold,
        votes=votes,
        budget=_budget(budget),
        tolerance=tolerance,
    )
    loaded = load_encoder(
        encoder, weights=weights, pool=pool, size=size, device=device, precision=precision, runtime=runtime
    )
    base_options = BaseOptions(
        samples=samples,
        steps=steps,
        fill=fill,
        features=None if features is None else FEATURES[features],
        channels=channels,
        target=chosen_target(loaded, target, target_text, target_not, root=data_root, protocol=protocol),
    )
    settings = MethodSettings(
        repeat=repeat, relax=relax, options=base_options, by=PERTURBATIONS[perturbation], passes=passes
    )
    methods = settings.methods(names)
    settings.expect_used(names, options.given(context))
    folders = [
        ResultsFolder(
            folder=out if len(methods) == 1 else out / name.replace(":", "-"),
            encoder=loaded,
            method=chosen,
            protocol=protocol,
            level=level,
            seed=seed,
        )
        for name, chosen in methods.items()
    ]
    searched = find_images([data_root / image for image in images], results=out)
    print_left_out(searched.left_out)
    raise typer.Exit(explain_all(searched.images, folders, out, as_json=as_json))


def _budget(text: str) -> int | Literal["auto"]:
    """Return the budget that an option stands for."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError as error:
        raise ConfigurationError(f"budget must be auto or a whole number, not {shown(text)}") from error
