"""Where rows are made: in this process, in several, or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import torch
import typer

from repeat_xai.data.content_keys import Check
from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.experiments.executors.local import Local
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.executors.work_queue import MOST_WORKERS
from repeat_xai.experiments.making_rows import Executor
from repeat_xai.experiments.worker import Worker

Place = Literal["local", "processes", "ray"]
PlaceOption = Annotated[
    Place,
    typer.Option("--executor", help="local, in this process; processes, one for each GPU; or ray, on a cluster."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="If not one for each GPU; on CPUs, one for every core of a cluster, or for every four of this machine.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of a Ray cluster, or auto for this machine's; else one is started here."),
]
RowsOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where rows are kept, if not in OUT/rows: a folder, or s3://… and the like."),
]
CheckOption = Annotated[
    Check,
    typer.Option(
        help="How a changed image is noticed: by the time and size of its file, or by its content, which is read anew."
    ),
]
GPUS = {"auto": None, "cpu": 0.0, "cuda": 1.0}
"""Of each worker of a cluster; 1 if the cluster has any, if not told."""
CORES = 4
"""For each worker on a CPU."""


@contextmanager
def executing(
    place: Place, worker: Worker, *, device: str, workers: int | None, address: str | None
) -> Iterator[Executor]:
    """Yield what makes rows; its processes or actors end with the block, not when memory happens to be freed."""
    executor = executor_of(place, worker, device=device, workers=workers, address=address)
    try:
        yield executor
    finally:
        if not isinstance(executor, Local):
            executor.close()


def executor_of(
    place: Place, worker: Worker, *, device: str, workers: int | None = None, address: str | None = None
) -> Local | Processes | RayExecutor:
    """What makes rows where they are wanted, named by the worker here."""
    if address is not None and place != "ray":
        raise ConfigurationError("--ray-address is for --executor ray")
    if place == "processes":
        return Processes(worker=worker, devices=devices(device, workers))
    if place == "ray":
        choose("device", device, GPUS)
        return RayExecutor(worker=worker, address=address, workers=workers, gpus=GPUS[device])
    if workers is not None:
        raise ConfigurationError("--workers is for --executor processes or ray")
    return Local(worker=worker)


def devices(device: str, workers: int | None) -> tuple[str, ...]:
    """One for each worker, as many on one GPU as on any other."""
    at_least("workers", 1 if workers is None else workers, 1, MOST_WORKERS)
    gpus = torch.cuda.device_count()
    every = [f"cuda:{number}" for number in range(gpus)] if gpus and device in ("auto", "cuda") else [device]
    names = ["cpu"] if every == ["auto"] else every
    count = workers or (len(names) if names != ["cpu"] else max(2, (os.cpu_count() or 1) // CORES))
    return tuple(names[number % len(names)] for number in range(count))
