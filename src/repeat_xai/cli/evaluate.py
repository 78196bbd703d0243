"""`repeat-xai evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.cli.executor_options import (
    AddressOption,
    CheckOption,
    ExecutorOption,
    RowsOption,
    WorkersOption,
    running_executor,
    worker_device,
)
from repeat_xai.cli.explain_progress import expect_size, interruptible, print_left_out
from repeat_xai.cli.row_progress import filled
from repeat_xai.cli.write_results import told
from repeat_xai.data.images import ImageProtocol
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.evaluation import Evaluation
from repeat_xai.experiments.executors.executor import Placement
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker
from repeat_xai.files.atomic import remove_old_drafts
from repeat_xai.methods.method_names import MethodSettings, split_names
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Estimator, Repeat
from repeat_xai.metrics import KINDS, METRICS, EncoderMetric, MapMetric, SetMetric
from repeat_xai.output.page import expect_replaceable_page

METRIC_NAMES = {kind: ", ".join(name for name, metric in METRICS.items() if isinstance(metric, kind)) for kind in KINDS}


def evaluate(
    dataset: Annotated[str, typer.Option(help=f"{', '.join(DATASETS)}, cifar10+FILE, or a folder of images.")],
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and rows.")],
    against: Annotated[
        list[str] | None, typer.Option(help="Another dataset, to be told from it; may be given several times.")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=WEIGHTS]", help="As for explain; may be given several times."),
    ] = None,
    methods: Annotated[str, typer.Option(help="As for explain, with commas.")] = "repeat,relax",
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics, separated by commas; `repeat-xai list metrics` describes them. "
            f"Of a map: {METRIC_NAMES[MapMetric]}. Of an encoder and a method: {METRIC_NAMES[EncoderMetric]}. "
            f"With --against: {METRIC_NAMES[SetMetric]}."
        ),
    ] = "complexity,sparseness",
    images: Annotated[int | None, typer.Option(min=1, help="Drawn from each dataset; all, if not told.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Method that the others are compared with, by Wilcoxon's test.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often, with other masks.")] = 1,
    draws: Annotated[int, typer.Option(min=1, help="Disturbances of an image, for metrics of robustness.")] = 200,
    aggregate: Annotated[str, typer.Option(help="For ood, a map in a number: mean, median, top, entropy.")] = "mean",
    protocol: Annotated[
        ImageProtocol, typer.Option(help="The paper's preprocessing, squeezed to 224×224, or the encoder's own.")
    ] = "encoder",
    size: Annotated[int | None, typer.Option(min=1, help="Side of the square input, if not the encoder's own.")] = None,
    estimator: Annotated[Estimator, typer.Option(help="Of REPEAT: the paper's, or from one designed pool.")] = "exact",
    masks: Annotated[int, typer.Option(min=1, help="Masks per repeat.")] = 1000,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats.")] = 10,
    passes: Annotated[int, typer.Option(min=2, help="Passes of methods without uncertainty of their own.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Draws images and masks.")] = 0,
    data_root: Annotated[Path, typer.Option(help="Where datasets lie, as torchvision has them.")] = Path("data"),
    download: Annotated[bool, typer.Option("--download", help="Fetch datasets that are missing.")] = False,
    check: CheckOption = "time",
    maps: Annotated[bool, typer.Option("--maps", help="Keep every map, in OUT/maps.zarr.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    ray_address: AddressOption = None,
    rows: RowsOption = None,
) -> None:
    """Judge methods on a dataset: tables, histograms and ROC curves; interrupted, the same command goes on."""
    expect_replaceable_page(out)
    expect_size(protocol, size)
    relax = Relax(masks=masks)
    repeat = Repeat(base=relax, estimator=estimator, repeats=repeats)
    asked = Evaluation(
        dataset=dataset,
        against=tuple(against or ()),
        encoder_specs=tuple(
            EncoderSpec.of(text, size=size, protocol=protocol) for text in encoder or ["efficientnet_lite0"]
        ),
        methods=MethodSettings(repeat=repeat, relax=relax, passes=passes).methods(split_names(methods)),
        metrics=tuple(name.strip() for name in metrics.split(",")),
        baseline=baseline,
        protocol=protocol,
        seed=seed,
        runs=runs,
        draws=draws,
        aggregate=aggregate,
    )
    stored = out / "maps.zarr"
    worker = Worker(
        device=worker_device(executor, device),
        root=data_root,
        download=download,
        check=check,
        maps=MapStore(stored, writable=maps) if maps or stored.is_dir() else None,
    )
    for folder in (out, stored):
        remove_old_drafts(folder)
    needing = [name for name in asked.metrics if METRICS[name].needs == "segmentation"]
    if needing and not worker.dataset(dataset).has_segmentations:
        raise ConfigurationError(f"{', '.join(needing)}: {dataset} has no segmentations of objects")
    print_left_out(line for name in (dataset, *asked.against) if (line := worker.dataset(name).left_out))
    store = RowStore(rows or out / "rows")
    campaign = Campaign(sheets=asked.sheets, images=images, seed=seed, store=store, worker=worker)
    budget = f"{repeats} repeats, {masks} masks, {estimator}; {passes} passes of other methods."
    if {"local_lipschitz", "max_sensitivity"} & set(asked.metrics):
        budget += f" {draws} disturbances of an image for robustness."
    starred = f"* differs from {baseline}: Wilcoxon's signed-rank test, Holm's correction, p < 0.05."
    with interruptible():
        with running_executor(executor, worker, Placement(device, workers, ray_address)) as chosen_executor:
            failed = filled(campaign, chosen_executor)
        told(
            campaign,
            out,
            title=f"Methods on {Path(dataset).name}",
            asked=asked,
            notes=(budget, starred) if baseline else (budget,),
        )
    raise typer.Exit(1 if failed else 0)
