"""The registry of metrics: every metric of a map, of an encoder and a method, and of sets of images, by its name.

Each file of `metrics` describes its metrics in a tuple `NAMED`, from which the registry is built. The registry in turn
drives `repeat-xai list metrics`, the help of `repeat-xai evaluate`, and the columns of its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from repeat_xai.metrics.metric import EncoderMetric, MapMetric, Metric, SetMetric

KINDS: dict[type[Metric], str] = {
    MapMetric: "Metrics of a map",
    EncoderMetric: "Metrics of an encoder and a method",
    SetMetric: "Metrics of sets of images",
}
"""The heading of each kind of metric, in the order in which metrics are listed."""


def _described() -> Iterator[Metric]:
    """Yield the metrics that the files of `metrics` describe."""
    for module in walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        yield from getattr(import_module(module.name), "NAMED", ())


METRICS: dict[str, Metric] = {
    metric.name: metric for metric in sorted(_described(), key=lambda metric: list(KINDS).index(type(metric)))
}
"""Metrics by name. A metric that is added here, under its name, can be asked for like those of the package."""


def map_metrics() -> dict[str, MapMetric]:
    """Return the metrics of a map by their names, those registered later included."""
    return {name: metric for name, metric in METRICS.items() if isinstance(metric, MapMetric)}
