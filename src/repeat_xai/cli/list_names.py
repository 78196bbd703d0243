"""The command `repeat-xai list` prints the names that other commands take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from repeat_xai.cli.options import listed
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.encoders.load_encoder import names as encoder_names
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.experiments.executors.executor_names import EXECUTORS
from repeat_xai.methods.method_names import METHODS
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import KINDS, METRICS


def methods() -> list[str]:
    """Return a line for each method: whether it is stochastic, needs gradients, its encoder calls and its authors."""
    columns = "{:<22}{:<12}{:<11}{:>6}  {}"
    lines = [columns.format("method", "stochastic", "gradients", "calls", "citation")]
    for name, method in METHODS.items():
        stochastic, gradients, calls = (getattr(method, fact, None) for fact in ("stochastic", "gradients", "calls"))
        facts = (_yes_or_no(stochastic), _yes_or_no(gradients), "unknown" if calls is None else f"{calls:,}")
        lines.append(columns.format(name, *facts, getattr(method, "citation", "")).rstrip())
    return [*lines, "", *NOTES]


def _yes_or_no(fact: bool | None) -> str:
    """Return a fact in a word; a method of a user's own need not state it."""
    return "unknown" if fact is None else "yes" if fact else "no"


def metrics() -> list[str]:
    """Return a line for each metric, by kind: which direction is better, what it needs and what it measures."""
    columns = "{:<22}{:<9}{:<17}{}"
    lines = []
    for kind, heading in KINDS.items():
        lines += [heading, "", columns.format("metric", "better", "needs", "measures")]
        for metric in METRICS.values():
            if isinstance(metric, kind):
                source = f" ({metric.citation})" if metric.citation else ""
                lines.append(columns.format(metric.name, metric.better, metric.needs, metric.description + source))
        lines.append("")
    return lines[:-1]


def datasets() -> list[str]:
    """Return a line for each dataset with its description."""
    lines = [f"{name:<20}{dataset.description}" for name, dataset in DATASETS.items()]
    lines.append(f"{'cifar10+FILE':<20}CIFAR-10 under a poison of your own: a file of poisoned images or noise")
    return [*lines, f"{'FOLDER':<20}the images in any folder and the folders below it"]


def executors() -> list[str]:
    """Return a line for each executor: its name, and where it makes rows."""
    return [f"{name:<20}{entry.description}" for name, entry in EXECUTORS.items()]


def with_first_sentences(registry: Mapping[str, object]) -> list[str]:
    """Return a line for each name with the first sentence of its docstring."""
    sentences = {name: (entry.__doc__ or "").strip().partition("\n")[0] for name, entry in registry.items()}
    return [f"{name:<20}{sentence.removesuffix('.')}" for name, sentence in sentences.items()]


NOTES = (
    "The column calls shows the encoder calls of one run on an image of 224×224 pixels, with default options. For",
    "repeat, that is the maximum: usually it takes a few hundred, and about two thousand for transformers. Methods",
    "other than repeat and relax are run ten times on changed images to measure their uncertainty; see --perturbation",
    "and --passes.",
    "",
    "A name may also be repeat:NAME, which is REPEAT over that stochastic method instead of RELAX; once:NAME, one run",
    "of that method, without uncertainty; or repeat:OPTION=VALUE, REPEAT with another threshold, repeats or votes.",
)

LISTED: dict[str, Callable[[], list[str]]] = {
    "encoders": encoder_names,
    "methods": methods,
    "metrics": metrics,
    "datasets": datasets,
    "thresholds": lambda: with_first_sentences(THRESHOLDS),
    "kernels": lambda: with_first_sentences(KERNELS),
    "executors": executors,
}
"""The kinds of names that can be listed, each with a function that returns its lines."""


def list_names(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"The kind of names to list: {listed(LISTED)}.")],
) -> None:
    """List names that the other commands take, each with a description."""
    if kind not in LISTED:
        raise typer.BadParameter(f"{kind!r} is not one of {', '.join(map(repr, LISTED))}", param_hint="KIND")
    for line in LISTED[kind]():
        typer.echo(line)
