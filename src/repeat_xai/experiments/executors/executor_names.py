"""The executors by name: the registry from which the command line, its help and `repeat-xai list executors` are made.

To add an executor, write a class with the methods of `Executor` and add a line to `EXECUTORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from repeat_xai.errors import ConfigurationError, choose
from repeat_xai.experiments.executors.executor import Executor, Local, Placement
from repeat_xai.experiments.executors.processes import Processes
from repeat_xai.experiments.executors.ray_executor import RayExecutor
from repeat_xai.experiments.worker import Worker


class ExecutorEntry(NamedTuple):
    """An executor of the registry."""

    description: str
    """One line that says where rows are made."""
    make: Callable[[Worker, Placement], Executor]
    """Function that returns the executor; the worker names the rows, and makes them if `in_this_process`."""
    options: tuple[str, ...] = ()
    """Fields of `Placement`, apart from the device, that the executor uses."""
    in_this_process: bool = False
    """Whether rows are made by the worker of this process, which then needs the device that is asked for."""


EXECUTORS: dict[str, ExecutorEntry] = {
    "local": ExecutorEntry("in this process, on one device", Local.placed, in_this_process=True),
    "processes": ExecutorEntry(
        "in several processes of this machine, one for each GPU", Processes.placed, options=("workers",)
    ),
    "ray": ExecutorEntry(
        "by the workers of a Ray cluster, on one or several machines",
        RayExecutor.placed,
        options=("workers", "ray_address"),
    ),
}


def make_executor(name: str, worker: Worker, placement: Placement) -> Executor:
    """Return the executor of this name; raise an error if `placement` sets an option that the executor does not use."""
    choose("executor", name, EXECUTORS)
    for option, default in Placement._field_defaults.items():
        if option != "device" and option not in EXECUTORS[name].options and getattr(placement, option) != default:
            users = [other for other, entry in EXECUTORS.items() if option in entry.options]
            raise ConfigurationError(
                f"{option.replace('_', ' ')} cannot be set for the executor {name}; it is for {' or '.join(users)}"
            )
    return EXECUTORS[name].make(worker, placement)
