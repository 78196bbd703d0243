"""`repeat-xai reproduce`."""

from __future__ import annotations

from dataclasses import replace
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
from repeat_xai.cli.explain_progress import interruptible
from repeat_xai.cli.row_progress import filled
from repeat_xai.cli.write_results import told
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
from repeat_xai.output.page import expect_replaceable_page
from repeat_xai.output.paper_figures import write_figure
from repeat_xai.output.results_folder import Printed


def reproduce(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME…", help="Tables and figures by name, or all; list lists them.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and rows.")] = Path("reproduced"),
    encoder: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=WEIGHTS]", help="Beside the paper's; one of the paper's name takes its place."),
    ] = None,
    only_these: Annotated[bool, typer.Option("--only-these", help="Leave out the paper's own encoders.")] = False,
    preset: Annotated[str, typer.Option(help="Which reading: paper or notebook.")] = "paper",
    images: Annotated[int, typer.Option(min=1, help="Of each dataset, or all if it has fewer.")] = 1000,
    masks: Annotated[int, typer.Option(min=1, help="Masks per repeat.")] = 1000,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; 20 and 30 in table `repeats` grow with it.")] = 10,
    passes: Annotated[int, typer.Option(min=2, help="Passes of methods without uncertainty of their own.")] = 10,
    samples: Annotated[int | None, typer.Option(min=1, help="Of Kernel SHAP, if not its own.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Of integrated gradients, if not its own.")] = None,
    draws: Annotated[int, typer.Option(min=1, help="Disturbances of an image, for robustness.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Draws images and masks.")] = 0,
    data_root: Annotated[Path, typer.Option(help="Where datasets lie, as torchvision has them.")] = Path("data"),
    download: Annotated[bool, typer.Option("--download", help="Fetch datasets that are missing.")] = False,
    check: CheckOption = "time",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    ray_address: AddressOption = None,
    rows: RowsOption = None,
) -> None:
    """Make tables and figures of the paper anew, what it prints beside ours; interrupted, the same command goes on."""
    if names == ["list"]:
        for kind in (TABLES, FIGURES):
            for entry in kind.values():
                typer.echo(f"{entry.name:<24}{entry.where:<41}{entry.title}")
        return
    expect_replaceable_page(out)
    asked = [*TABLES, *FIGURES] if names == ["all"] else names
    for name in asked:
        choose("table or figure", name, {**TABLES, **FIGURES})
    choose("preset", preset, PRESETS)
    if only_these and not encoder:
        raise ConfigurationError("--only-these leaves out the paper's encoders: say by --encoder which are left")
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
    sheets = reproduction.sheets([TABLES[name] for name in asked if name in TABLES], available)
    here = worker if worker.device == device else Worker(device=device, root=data_root, check=check)
    drawings = [
        FigureRequest(figure=figure, encoder_spec=spec, preset=chosen, worker=here, images=images, seed=seed)
        for figure, spec in reproduction.figures([FIGURES[name] for name in asked if name in FIGURES], available)
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
    missing = [f"{', '.join(lacking)}: {what} ({why})" for what, why, lacking in available.missing]
    for line in missing:
        typer.echo(f"repeat-xai: not run in {line}", err=True)
    with interruptible():
        with running_executor(executor, worker, Placement(device, workers, ray_address)) as chosen_executor:
            failed = filled(campaign, chosen_executor)
        pictures, undrawn = _drawn([replace(drawing, rows=campaign.rows_of_images) for drawing in drawings], out)
        told(
            campaign,
            out,
            title="The paper anew",
            asked=reproduction,
            notes=(f"Preset {preset}: {chosen.budget}; {draws} disturbances of an image for robustness.",),
            pictures=pictures,
            missing=[*missing, *undrawn],
        )
    raise typer.Exit(1 if failed or undrawn or not (drawings or any(sheet.cases for sheet in sheets)) else 0)


def _drawn(drawings: list[FigureRequest], out: Path) -> tuple[list[Printed], list[str]]:
    """Draw them all, and tell of each; and why some could not be."""
    made, failed = [], []
    for drawing in drawings:
        typer.echo(f"repeat-xai: drawing {drawing.figure.name}, {drawing.encoder_spec.label}", err=True)
        try:
            made.append(write_figure(drawing, out))
            typer.echo(f"{made[-1].picture}: {made[-1].title}")
        except RepeatError as error:
            failed.append(f"{drawing.figure.name}, {drawing.encoder_spec.label}: {error}")
            typer.echo(f"repeat-xai: {failed[-1]}", err=True)
    return made, failed
