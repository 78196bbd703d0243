"""Options that say where rows are made and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer

from repeat_xai.cli.options import ADVANCED
from repeat_xai.errors import choose
from repeat_xai.experiments.executors.executor import Executor, Placement
from repeat_xai.experiments.executors.executor_names import EXECUTORS, make_executor
from repeat_xai.experiments.worker import Worker


def known_executor(name: str) -> str:
    """Return the name of an executor; raise an error if there is none of this name."""
    choose("executor", name, EXECUTORS)
    return name


ExecutorOption = Annotated[
    str,
    typer.Option(
        metavar="|".join(EXECUTORS),
        callback=known_executor,
        rich_help_panel=ADVANCED,
        help="Where images are explained and scored: "
        f"{'; '.join(f'{name}, {entry.description}' for name, entry in EXECUTORS.items())}.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of worker processes. By default, there is one for each GPU; without GPUs, one for each core of a "
        "Ray cluster, or for every four cores of this machine.",
        rich_help_panel=ADVANCED,
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Address of a Ray cluster, or auto for the cluster of this machine. By default, one is started here.",
        rich_help_panel=ADVANCED,
    ),
]
RowsOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Folder, or URL such as s3://…, in which the rows are stored: the scores of each image by each method. By "
        "default, this is OUT/rows.",
        rich_help_panel=ADVANCED,
    ),
]


@contextmanager
def running_executor(name: str, worker: Worker, placement: Placement) -> Iterator[Executor]:
    """Yield the executor of this name, and stop its processes or actors at the end of the block."""
    with closing(make_executor(name, worker, placement)) as executor:
        yield executor


def worker_device(executor: str, device: str) -> str:
    """Return the device of this process's worker, which only names the rows if they are made elsewhere."""
    return device if EXECUTORS[executor].in_this_process else "cpu"
