"""`repeat-xai explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from repeat_xai.cli import options
from repeat_xai.cli.explain_progress import expect_size, explain_all, print_left_out
from repeat_xai.cli.options import ADVANCED, BUDGET, HOW, OUTPUT
from repeat_xai.data.image_files import find_images
from repeat_xai.data.images import load_image
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.encoders.torch_encoder import Precision, Runtime
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.engine.masks import Grid, Style
from repeat_xai.errors import ConfigurationError, choose, shown
from repeat_xai.methods.bases.features import FEATURES
from repeat_xai.methods.method_names import BaseOptions, MethodSettings, split_names
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.methods.votes import Votes
from repeat_xai.output.results_folder import ResultsFolder


def explain(
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE…", readable=False, help="Image files, or folders of images.")
    ],
    *,
    encoder: options.Encoder = "efficientnet_lite0",
    weights: options.Weights = None,
    method: Annotated[
        str,
        typer.Option(
            help="The method, or several with commas, which are then also drawn side by side: repeat, relax, saliency "
            "and others (see `repeat-xai list methods`); repeat:NAME is REPEAT over another base.",
            rich_help_panel=HOW,
        ),
    ] = "repeat",
    level: Annotated[
        float,
        typer.Option(
            help="Share of the votes that makes a pixel certainly important: above 0.5, at most 1.", rich_help_panel=HOW
        ),
    ] = 0.95,
    seed: options.Seed = 0,
    budget: Annotated[
        str,
        typer.Option(
            help="Number of masks for each image, in whole blocks, or auto for as many as the accuracy asks.",
            rich_help_panel=BUDGET,
        ),
    ] = "auto",
    estimator: options.EstimatorOption = "fast",
    masks: options.Masks = 1000,
    repeats: options.Repeats = 10,
    out: Annotated[Path, typer.Option(help="Folder for the results.", rich_help_panel=OUTPUT)],
    as_json: options.Json = False,
    device: options.Device = "auto",
    pool: options.Pool = None,
    size: options.Size = None,
    protocol: options.Protocol = "encoder",
    threshold: Annotated[
        str,
        typer.Option(
            help=f"Rule that finds the value above which a pixel is important: {', '.join(THRESHOLDS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = "mean",
    votes: Annotated[
        Votes,
        typer.Option(
            help="Whether a vote counts by the pixel's importance (weighted), or all votes alike (binary).",
            rich_help_panel=ADVANCED,
        ),
    ] = "weighted",
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Error of the importance at which an automatic budget stops. By default the error of as many exact "
            "repeats as --repeats says.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    similarity: Annotated[
        str,
        typer.Option(help=f"Kernel that compares codes: {', '.join(KERNELS)}.", rich_help_panel=ADVANCED),
    ] = "cosine",
    cells: Annotated[int, typer.Option(min=1, help="Cells per side of a mask's grid.", rich_help_panel=ADVANCED)] = 7,
    keep: Annotated[float, typer.Option(help="Probability that a cell is kept.", rich_help_panel=ADVANCED)] = 0.5,
    mask_style: Annotated[
        Style, typer.Option(help="Shape of the masks: RELAX's (the authors') or RISE's.", rich_help_panel=ADVANCED)
    ] = "relax",
    perturbation: Annotated[
        str,
        typer.Option(
            help="What changes between the passes of methods without uncertainty of their own: "
            f"{', '.join(PERTURBATIONS)}.",
            rich_help_panel=ADVANCED,
        ),
    ] = "dropout",
    passes: options.Passes = 10,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Samples per map, for kernel_shap, lime, smoothgrad, vargrad and gradient_shap.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Points on the path of integrated_gradients.", rich_help_panel=ADVANCED),
    ] = None,
    fill: Annotated[
        str | None,
        typer.Option(
            help="What replaces hidden pixels, for methods other than REPEAT and RELAX: mean (the mean colour), black "
            "or blur.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Parts that kernel_shap and lime hide together: squares, superpixels or values.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(
            help="How the attributions of all channels become one map: sum_abs, max_abs or mean.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Another image: explain which pixels make the images similar to it. For methods other than REPEAT and "
            "RELAX.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Precision of the encoder; auto is half precision on a GPU where that does not change the votes.",
            rich_help_panel=ADVANCED,
        ),
    ] = "auto",
    runtime: Annotated[
        Runtime,
        typer.Option(
            help="How the encoder is run; auto is ONNX Runtime on a CPU, and compiled in long runs on a GPU.",
            rich_help_panel=ADVANCED,
        ),
    ] = "auto",
    chunk: Annotated[
        int | None,
        typer.Option(min=1, help="Masked copies per batch; by default as the device suits.", rich_help_panel=ADVANCED),
    ] = None,
    data_root: Annotated[
        Path, typer.Option(help="Folder that relative paths of images start from.", rich_help_panel=ADVANCED)
    ] = Path(),
) -> None:
    """Show which pixels of an image an encoder's code depends on, and how sure that is.

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
        reference=None if reference is None else load_image(data_root / reference, loaded, protocol=protocol),
    )
    settings = MethodSettings(
        repeat=repeat, relax=relax, options=base_options, by=PERTURBATIONS[perturbation], passes=passes
    )
    methods = settings.methods(names)
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
