"""The command `repeat-xai evaluate` computes metrics over a dataset and writes tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from repeat_xai.cli import options
from repeat_xai.cli.executor_options import (
    AddressOption,
    ExecutorOption,
    RowsOption,
    WorkersOption,
    running_executor,
    worker_device,
)
from repeat_xai.cli.explain_progress import expect_size, interruptible, print_left_out
from repeat_xai.cli.options import ADVANCED, HOW, OUTPUT, WHAT
from repeat_xai.cli.row_progress import make_rows_with_progress
from repeat_xai.cli.write_results import write_results
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.evaluation import Evaluation
from repeat_xai.experiments.executors.executor import Placement
from repeat_xai.experiments.measures import metrics_with_draws
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker
from repeat_xai.files.atomic import remove_old_drafts
from repeat_xai.methods.method_names import MethodSettings, split_names
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics import KINDS, METRICS, EncoderMetric, MapMetric, SetMetric
from repeat_xai.output.campaign_results import expect_same_seed
from repeat_xai.output.page import expect_replaceable_page

METRIC_NAMES = {kind: ", ".join(name for name, metric in METRICS.items() if isinstance(metric, kind)) for kind in KINDS}


def evaluate(
    *,
    dataset: Annotated[
        str,
        typer.Option(
            help=f"Dataset whose images are explained: {', '.join(DATASETS)}, cifar10+FILE, or a folder of images.",
            rich_help_panel=WHAT,
        ),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Out-of-distribution dataset, whose images a method should tell from those of --dataset. May be given "
            "several times.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    encoder: options.Encoders = None,
    images: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of images that are drawn at random from each dataset. By default, all of them are used.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data_root: options.DataRoot = Path("data"),
    methods: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas; `repeat-xai list methods` describes them.", rich_help_panel=HOW
        ),
    ] = "repeat,relax",
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics, separated by commas; `repeat-xai list metrics` describes them. "
            f"Of a map: {METRIC_NAMES[MapMetric]}. Of an encoder and a method: {METRIC_NAMES[EncoderMetric]}. "
            f"Of two datasets, with --against: {METRIC_NAMES[SetMetric]}. "
            "mprt and emprt are tests in which the encoder's weights are randomised; ood detects out-of-distribution "
            "images by uncertainty, codes by the codes alone.",
            rich_help_panel=HOW,
        ),
    ] = "complexity,sparseness",
    seed: options.Seed = 0,
    estimator: options.EstimatorOption = "exact",
    masks: options.Masks = 1000,
    repeats: options.Repeats = 10,
    out: Annotated[
        Path, typer.Option(help="Folder that tables, figures and scores are written to.", rich_help_panel=OUTPUT)
    ],
    device: options.Device = "auto",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Method that the others are compared with, image by image, by Wilcoxon's signed-rank test.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of runs, each with another seed; the standard deviation over runs is reported.",
            rich_help_panel=ADVANCED,
        ),
    ] = 1,
    draws: options.DrawsOption = 200,
    aggregate: options.Aggregate = "mean",
    protocol: options.Protocol = "encoder",
    size: options.Size = None,
    passes: options.Passes = 10,
    download: options.Download = False,
    check: options.CheckImages = "time",
    maps: Annotated[
        bool, typer.Option("--maps", help="Keep all maps in the folder OUT/maps.zarr.", rich_help_panel=ADVANCED)
    ] = False,
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    ray_address: AddressOption = None,
    rows: RowsOption = None,
) -> None:
    """Judge methods and encoders on a dataset by metrics, and write tables, histograms and ROC curves.

    An interrupted run goes on when the same command is run again; what is done is not computed again.
    """
    expect_replaceable_page(out)
    expect_same_seed(out, seed)
    expect_size(protocol, size)
    relax = Relax(masks=masks)
    repeat = Repeat(base=relax, estimator=estimator, repeats=repeats)
    evaluation = Evaluation(
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
    needing = [name for name in evaluation.metrics if METRICS[name].needs == "segmentation"]
    if needing and not worker.dataset(dataset).has_segmentations:
        raise ConfigurationError(f"{', '.join(needing)}: {dataset} has no segmentations of objects")
    print_left_out(line for name in (dataset, *evaluation.against) if (line := worker.dataset(name).left_out))
    for spec in evaluation.encoder_specs:  # a wrong name is refused before the store makes its folder
        worker.encoder(spec)
    store = RowStore(rows or out / "rows")
    campaign = Campaign(sheets=evaluation.sheets, images=images, seed=seed, store=store, worker=worker)
    budget = f"{repeats} repeats, {masks} masks, {estimator}; {passes} passes of other methods."
    if metrics_with_draws() & set(evaluation.metrics):
        budget += f" {draws} disturbances of an image for robustness."
    significance = f"* differs from {baseline}: Wilcoxon's signed-rank test, Holm's correction, p < 0.05."
    with interruptible():
        with running_executor(executor, worker, Placement(device, workers, ray_address)) as chosen_executor:
            failed = make_rows_with_progress(campaign, chosen_executor)
        write_results(
            campaign,
            out,
            title=f"Methods on {Path(dataset).name}",
            request=evaluation,
            notes=(budget, significance) if baseline else (budget,),
        )
    raise typer.Exit(1 if failed else 0)
