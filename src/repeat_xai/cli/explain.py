"""`repeat-xai explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from repeat_xai.cli.explain_progress import expect_size, explain_all, tell_left_out
from repeat_xai.data.image_files import find_images
from repeat_xai.data.images import ImageProtocol, load_image
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.encoders.torch_encoder import Precision, Runtime
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.engine.masks import Grid, Style
from repeat_xai.errors import ConfigurationError, choose, shown
from repeat_xai.methods.bases.features import FEATURES
from repeat_xai.methods.method_names import BaseOptions, MethodSettings, split_names
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Estimator, Repeat
from repeat_xai.methods.votes import Votes
from repeat_xai.output.results_folder import ResultsFolder


def explain(
    images: Annotated[
        list[Path], typer.Argument(metavar="IMAGE…", readable=False, help="Image files, or folders of them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    encoder: Annotated[
        str, typer.Option(help="efficientnet_lite0, torchvision:NAME, timm:NAME, hf:NAME or onnx:FILE.")
    ] = "efficientnet_lite0",
    weights: Annotated[
        str | None, typer.Option(help="Local safetensors file or state dict; 'random' for an untrained network.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="Which tensor is the representation: avg, max, cls, flatten, none or head.")
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square input, if not the encoder's own.")] = None,
    protocol: Annotated[
        ImageProtocol, typer.Option(help="The encoder's own preprocessing, or the paper's: squeezed to 224×224.")
    ] = "encoder",
    method: Annotated[
        str,
        typer.Option(help="How to explain; several, as in repeat,relax,repeat:kernel_shap, are drawn side by side."),
    ] = "repeat",
    estimator: Annotated[
        Estimator, typer.Option(help="Repeat from one designed pool of masks, or as so many runs.")
    ] = "fast",
    budget: Annotated[
        str, typer.Option(help="For fast: the number of masks, or auto for as many as the accuracy asks.")
    ] = "auto",
    tolerance: Annotated[
        float | None, typer.Option(help="For fast: error of importance at which an automatic pool stops.")
    ] = None,
    masks: Annotated[int, typer.Option(min=1, help="Masks per repeat; for fast, of those it estimates.")] = 1000,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; for fast, how many to be as accurate as.")] = 10,
    threshold: Annotated[str, typer.Option(help="mean, otsu, triangle or li.")] = "mean",
    votes: Annotated[Votes, typer.Option(help="Weighted by importance, or not.")] = "weighted",
    similarity: Annotated[str, typer.Option(help="cosine, linear, polynomial or rbf.")] = "cosine",
    cells: Annotated[int, typer.Option(min=1, help="Cells a side of a mask's grid.")] = 7,
    keep: Annotated[float, typer.Option(help="Probability that a cell is kept.")] = 0.5,
    mask_style: Annotated[Style, typer.Option(help="Whose masks.")] = "relax",
    spread: Annotated[
        str,
        typer.Option(help="What differs between passes: dropout, noise, flips, crops or mc_dropout."),
    ] = "dropout",
    passes: Annotated[int, typer.Option(min=2, help="Passes of other methods.")] = 10,
    samples: Annotated[int | None, typer.Option(min=1, help="Of methods that sample.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of integrated_gradients.")] = None,
    fill: Annotated[
        str | None, typer.Option(help="What replaces hidden pixels: mean (the mean colour), black or blur.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="What kernel_shap and lime take away: squares, superpixels or values.")
    ] = None,
    channels: Annotated[str | None, typer.Option(help="How channels become one: sum_abs, max_abs or mean.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Which pixels make the images like this one? For methods that take it.")
    ] = None,
    level: Annotated[float, typer.Option(help="Share of votes that makes a verdict.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same maps.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[
        Precision, typer.Option(help="Of the encoder; auto: half on a GPU, where that decides no votes.")
    ] = "auto",
    runtime: Annotated[
        Runtime, typer.Option(help="Of the encoder; auto: ONNX Runtime on a CPU, compiled in long runs on a GPU.")
    ] = "auto",
    chunk: Annotated[int | None, typer.Option(min=1, help="Masked copies at once, if not as suits the device.")] = None,
    data_root: Annotated[Path, typer.Option(help="Where relative image paths are looked up.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per image.")] = False,
) -> None:
    """Explain images: for each a panel PNG, its maps as .npz and its provenance as .json; and a page of them all."""
    expect_size(protocol, size)
    choose("similarity", similarity, KERNELS)
    if not 0.5 < level <= 1:
        raise ConfigurationError(f"level must be above 0.5 and at most 1, not {level}")
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
        budget=budget_of(budget),
        tolerance=tolerance,
    )
    by = chosen("spread", spread, PERTURBATIONS)
    names = split_names(method)
    loaded = load_encoder(
        encoder, weights=weights, pool=pool, size=size, device=device, precision=precision, runtime=runtime
    )
    options = BaseOptions(
        samples=samples,
        steps=steps,
        fill=fill,
        features=None if features is None else chosen("features", features, FEATURES),
        channels=channels,
        reference=None if reference is None else load_image(data_root / reference, loaded, protocol=protocol),
    )
    settings = MethodSettings(repeat=repeat, relax=relax, options=options, by=by, passes=passes)
    methods = settings.methods(names)
    galleries = [
        ResultsFolder(
            folder=out if len(methods) == 1 else out / name.replace(":", "-"),
            encoder=loaded,
            method=one,
            protocol=protocol,
            level=level,
            seed=seed,
        )
        for name, one in methods.items()
    ]
    found = find_images([data_root / image for image in images], results=out)
    tell_left_out(found.left_out)
    raise typer.Exit(explain_all(found.images, galleries, out, as_json=as_json))


T = TypeVar("T")


def chosen(name: str, value: str, known: Mapping[str, T]) -> T:
    """The one of that name."""
    choose(name, value, known)
    return known[value]


def budget_of(text: str) -> int | Literal["auto"]:
    """Return the budget that an option stands for."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError as error:
        raise ConfigurationError(f"budget must be auto or a whole number, not {shown(text)}") from error
