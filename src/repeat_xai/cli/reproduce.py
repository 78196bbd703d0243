"""The command `repeat-xai reproduce` makes the tables and figures of the paper."""

from __future__ import annotations

from dataclasses import replace
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
from repeat_xai.cli.explain_progress import interruptible
from repeat_xai.cli.options import ADVANCED, BUDGET, HOW, OUTPUT, WHAT
from repeat_xai.cli.row_progress import make_rows_with_progress
from repeat_xai.cli.write_results import write_results
from repeat_xai.errors import ConfigurationError, RepeatError, choose
from repeat_xai.experiments.campaign import Campaign
from repeat_xai.experiments.executors.executor import Placement
from repeat_xai.experiments.paper.figure_request import FigureRequest
from repeat_xai.experiments.paper.presets import PRESETS
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES
from repeat_xai.experiments.paper.reproduction import Availability, Reproduction
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.experiments.store.row_store import RowStore
from repeat_xai.experiments.worker import Worker
from repeat_xai.files.atomic import remove_old_drafts
from repeat_xai.output.campaign_results import expect_same_seed
from repeat_xai.output.page import expect_replaceable_page
from repeat_xai.output.paper_figures import write_figure
from repeat_xai.output.results_folder import FigureFiles


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Names of tables and figures, or 'all' for every one; `repeat-xai reproduce list` lists them.",
        ),
    ],
    *,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=WEIGHTS]",
            help="An encoder in addition to the paper's, or in place of the one of the same name. WEIGHTS is a file of "
            "weights, or 'random' for an untrained network. May be given several times.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    only_these: Annotated[
        bool,
        typer.Option(
            "--only-these", help="Use only the encoders given by --encoder, not the paper's.", rich_help_panel=WHAT
        ),
    ] = False,
    images: Annotated[
        int,
        typer.Option(
            min=1, help="Number of images of each dataset, or all of them if it has fewer.", rich_help_panel=WHAT
        ),
    ] = 1000,
    data_root: options.DataRoot = Path("data"),
    preset: Annotated[
        str,
        typer.Option(
            help="Which reading is used where the paper is ambiguous: the one that its printed tables suggest (paper), "
            "or that of the authors' published notebook (notebook).",
            rich_help_panel=HOW,
        ),
    ] = "paper",
    seed: options.Seed = 0,
    masks: options.Masks = 1000,
    repeats: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of repeats, each of which votes on every pixel. The table `repeats` uses this "
            "number, twice and three times it.",
            rich_help_panel=BUDGET,
        ),
    ] = 10,
    out: Annotated[
        Path, typer.Option(help="Folder that tables, figures and scores are written to.", rich_help_panel=OUTPUT)
    ] = Path("reproduced"),
    device: options.Device = "auto",
    passes: options.Passes = 10,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of samples for a map of Kernel SHAP. By default, this is the method's own number.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of points on the path of integrated gradients. By default, this is the method's own number.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    draws: options.DrawsOption = 200,
    download: options.Download = False,
    check: options.CheckImages = "time",
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    ray_address: AddressOption = None,
    rows: RowsOption = None,
) -> None:
    """Make the tables and figures of the paper on REPEAT again, with the printed values beside the new ones.

    Datasets and weights that are not available are named first. An interrupted run goes on when the same command is run
    again.
    """
    if names == ["list"]:
        for kind in (TABLES, FIGURES):
            for entry in kind.values():
                typer.echo(f"{entry.name:<24}{entry.where:<41}{entry.title}")
        return
    expect_replaceable_page(out)
    expect_same_seed(out, seed)
    wanted = [*TABLES, *FIGURES] if names == ["all"] else names
    for name in wanted:
        choose("table or figure", name, {**TABLES, **FIGURES})
    choose("preset", preset, PRESETS)
    if only_these and not encoder:
        raise ConfigurationError("--only-these leaves out the paper's encoders; name others by --encoder")
    chosen = PRESETS[preset]
    chosen = replace(chosen, relax=replace(chosen.relax, masks=masks), repeats=repeats, passes=passes)
    chosen = replace(chosen, samples=samples, steps=steps)
    reproduction = Reproduction(
        preset=chosen,
        encoder_specs=tuple(EncoderSpec.of(text, protocol="paper") for text in encoder or ()),
        only_these=only_these,
        draws=draws,
        seed=seed,
    )
    worker = Worker(device=worker_device(executor, device), root=data_root, download=download, check=check)
    remove_old_drafts(out)
    for spec in reproduction.encoder_specs:
        worker.encoder(spec)
    available = Availability(worker)
    sheets = reproduction.sheets([TABLES[name] for name in wanted if name in TABLES], available)
    local_worker = worker if worker.device == device else Worker(device=device, root=data_root, check=check)
    drawings = [
        FigureRequest(figure=figure, encoder_spec=spec, preset=chosen, worker=local_worker, images=images, seed=seed)
        for figure, spec in reproduction.figures([FIGURES[name] for name in wanted if name in FIGURES], available)
    ]
    campaign = Campaign(
        sheets=sheets,
        extra_settings=[setting for drawing in drawings for setting in drawing.settings],
        images=images,
        allow_fewer=True,
        seed=seed,
        store=RowStore(rows or out / "rows"),
        worker=worker,
    )
    missing = [f"{', '.join(names)}: {source} ({reason})" for source, reason, names in available.missing]
    for line in missing:
        typer.echo(f"repeat-xai: not run in {line}", err=True)
    with interruptible():
        with running_executor(executor, worker, Placement(device, workers, ray_address)) as chosen_executor:
            failed = make_rows_with_progress(campaign, chosen_executor)
        pictures, undrawn = _draw_figures([replace(drawing, rows=campaign.rows_of_images) for drawing in drawings], out)
        write_results(
            campaign,
            out,
            title="The paper's results, made again",
            request=reproduction,
            notes=(f"Preset {preset}: {chosen.budget}; {draws} disturbances of an image for robustness.",),
            pictures=pictures,
            missing=[*missing, *undrawn],
        )
    raise typer.Exit(1 if failed or undrawn or not (drawings or any(sheet.contents for sheet in sheets)) else 0)


def _draw_figures(drawings: list[FigureRequest], out: Path) -> tuple[list[FigureFiles], list[str]]:
    """Draw the figures, print a line for each, and return them and the reasons why others could not be drawn."""
    drawn, failed = [], []
    for drawing in drawings:
        typer.echo(f"repeat-xai: drawing {drawing.figure.name}, {drawing.encoder_spec.label}", err=True)
        try:
            drawn.append(write_figure(drawing, out))
            typer.echo(f"{drawn[-1].picture}: {drawn[-1].title}")
        except RepeatError as error:
            failed.append(f"{drawing.figure.name}, {drawing.encoder_spec.label}: {error}")
            typer.echo(f"repeat-xai: {failed[-1]}", err=True)
    return drawn, failed
