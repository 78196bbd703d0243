"""`repeat-xai list`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.encoders import load_encoder as encoders
from repeat_xai.methods.method_names import METHODS
from repeat_xai.metrics import METRICS


class Kind(StrEnum):
    """What can be listed."""

    encoders = "encoders"
    methods = "methods"
    metrics = "metrics"
    datasets = "datasets"


def list_names(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List what can be asked for by name."""
    known = {Kind.encoders: encoders.names, Kind.methods: methods, Kind.metrics: metrics, Kind.datasets: datasets}
    for line in known[kind]():
        typer.echo(line)


def methods() -> list[str]:
    """A line a method: whether it is stochastic and needs gradients, what it costs, and whose it is."""
    columns = "{:<22}{:<12}{:<11}{:>6}  {}"
    lines = [columns.format("method", "stochastic", "gradients", "calls", "citation")]
    for name, method in METHODS.items():
        stochastic, gradients = ("yes" if fact else "no" for fact in (method.stochastic, method.gradients))
        lines.append(columns.format(name, stochastic, gradients, f"{method.calls:,}", method.citation))
    return [*lines, "", *NOTES]


def metrics() -> list[str]:
    """A line a metric: which way is better, what it needs, and whose it is."""
    columns = "{:<22}{:<9}{:<7}{}"
    lines = [columns.format("metric", "better", "needs", "citation")]
    return lines + [columns.format(m.name, m.better, m.needs, m.citation) for m in METRICS.values()]


def datasets() -> list[str]:
    """A line a dataset, in its own words."""
    lines = [f"{name:<20}{dataset.description}" for name, dataset in DATASETS.items()]
    lines.append(f"{'cifar10+FILE':<20}CIFAR-10 under a poison of your own: a file of poisoned images or noise")
    return [*lines, f"{'FOLDER':<20}the images in any folder and the folders below it"]


NOTES = (
    "calls: through the encoder for an image of 224×224, at the default budget; for repeat the most, some hundred are",
    "usual. repeat:NAME runs REPEAT over any stochastic method; the others are given their spread under dropout of the",
    "input, ten passes (--spread, --passes), at ten times the calls.",
)
