"""An evaluation: the methods, encoders and metrics to run on a dataset, and the sheets that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from repeat_xai.data.images import ImageProtocol
from repeat_xai.data.open_dataset import dataset_name
from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.experiments.columns import Column, EmprtColumn, MeanColumn, RunsColumn, can_judge, encoder_columns
from repeat_xai.experiments.detection_columns import (
    CRITERIA,
    SHARES,
    CodeDetectionColumn,
    DetectionColumn,
    PoisonColumn,
)
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.experiments.table import (
    Sheet,
    expect_distinct_labels,
    line_contents,
    lines_of_methods,
    one_line_per_map,
)
from repeat_xai.methods.base import Method
from repeat_xai.metrics import METRICS, EncoderMetric, MapMetric, SetMetric
from repeat_xai.metrics.detection import AGGREGATES, CODE_SCORES
from repeat_xai.metrics.metric import MAP_NAMES
from repeat_xai.seeds import expect_seed

MAX_RUNS = 1000


@final
@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The methods, encoders and metrics to run on a dataset, with their options."""

    dataset: str
    against: tuple[str, ...] = ()
    """Other datasets, whose images are to be distinguished from those of the dataset."""
    encoder_specs: tuple[EncoderSpec, ...] = (EncoderSpec(),)
    methods: Mapping[str, Method] = field(hash=False)
    """The methods, by their labels in tables."""
    metrics: tuple[str, ...] = ("complexity",)
    baseline: str | None = None
    """The label of the method that the others are compared with."""
    protocol: ImageProtocol = "encoder"
    seed: int = 0
    runs: int = 1
    """Number of runs with different seeds; if there are several, tables also show the deviation over them."""
    draws: int = 200
    """Disturbed copies of each image, for robustness."""
    aggregate: str = "mean"
    """The function that turns a map of uncertainty into one number, for `ood`."""

    def __post_init__(self) -> None:
        at_least("runs", self.runs, 1, MAX_RUNS)
        at_least("draws", self.draws, 1)
        expect_seed(self.seed)
        choose("aggregate", self.aggregate, AGGREGATES)
        for name in self.metrics:
            choose("metric", name, METRICS)
        if self.baseline is not None:
            choose("baseline", self.baseline, self.methods)
        expect_distinct_labels(self.encoder_specs)
        self._check_datasets()
        self._check_metrics()

    def _check_datasets(self) -> None:
        """Refuse datasets that tables could not distinguish, or that a metric cannot compare."""
        comparing = [name for name in self.metrics if isinstance(METRICS[name], SetMetric)]
        if comparing and not self.against:
            raise ConfigurationError(f"{', '.join(comparing)}: compares datasets; give at least one other in `against`")
        names = [Path(name).name for name in (self.dataset, *self.against)]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"two datasets have the same name among {', '.join(names)}; rename one")
        poisoned = self.dataset == "cifar10" and all(name.startswith("cifar10+") for name in self.against)
        if "poison" in self.metrics and not poisoned:
            raise ConfigurationError(
                "poison needs the dataset cifar10, and in `against` only poisoned copies of it such as cifar10+tap"
            )

    def _check_metrics(self) -> None:
        """Refuse metrics that cannot judge the encoders, or none of the methods."""
        onnx = any(spec.name.startswith("onnx:") for spec in self.encoder_specs)
        for name in self.metrics:
            metric = METRICS[name]
            if onnx and isinstance(metric, EncoderMetric) and metric.needs == "weights":
                raise ConfigurationError(f"{name} randomises weights, which an ONNX file does not allow; leave one out")
            if not any(can_judge(name, method) for method in self.methods.values()):
                raise ConfigurationError(f"{name} judges votes, and none of the methods casts any; add REPEAT")
            if isinstance(metric, SetMetric) and name not in COLUMNS.keys() | SHEETS.keys():
                raise ConfigurationError(f"{name} compares sets of images, but has no columns; add them to COLUMNS")

    @property
    def base_setting(self) -> Setting:
        """A setting with the dataset, protocol and seed of the evaluation; its encoder and method are replaced."""
        first_method = next(iter(self.methods.values()))
        return Setting(dataset=self.dataset, method=first_method, protocol=self.protocol, seed=self.seed)

    @property
    def sheets(self) -> list[Sheet]:
        """The main table, and the tables of metrics that have their own."""
        sheets = [sheet for name in self.metrics if name in SHEETS for sheet in SHEETS[name](self)]
        columns = [column for name in self.metrics for column in self._columns(name)]
        if self.runs > 1:
            columns += [RunsColumn(column=column, runs=self.runs) for column in columns]
        if not columns:
            return sheets
        main = Sheet(
            name="evaluation",
            title=f"Methods on {dataset_name(self.dataset)}",
            contents=line_contents(self.base_setting, self.encoder_specs, lines_of_methods(self.methods)),
            columns=columns,
            baseline=self.baseline,
        )
        return [main, *sheets]

    def _columns(self, name: str) -> list[Column]:
        """Return the columns of the main table for a metric."""
        metric = METRICS[name]
        if name in COLUMNS:
            return COLUMNS[name](self)
        if isinstance(metric, EncoderMetric):
            return [*encoder_columns(metric, draws=self.draws)]
        if isinstance(metric, MapMetric):
            map_names = MAP_NAMES if metric.needs == "map" else MAP_NAMES[:1]
            return [MeanColumn(metric=metric.name, map_name=map_name) for map_name in map_names]
        return []


def _ood_columns(evaluation: Evaluation) -> list[Column]:
    """Return a column for each other dataset and each criterion of detection."""
    return [
        DetectionColumn(against=other, criterion=criterion, aggregate=evaluation.aggregate)
        for other in evaluation.against
        for criterion in CRITERIA
    ]


def _codes_sheets(evaluation: Evaluation) -> list[Sheet]:
    """Return the table of detection by codes alone, without any explanation."""
    base, dataset = evaluation.base_setting, dataset_name(evaluation.dataset)
    # the label is the same for all methods, because none of them runs
    lines = lines_of_methods({"codes": base.method})[:1]
    sheet = Sheet(
        name="codes",
        title=f"Codes alone, {dataset} against other datasets; the first half of {dataset} is the reference",
        contents=line_contents(base, evaluation.encoder_specs, lines),
        columns=[
            CodeDetectionColumn(against=other, code_score=name) for other in evaluation.against for name in CODE_SCORES
        ],
    )
    return [sheet]


def _poison_sheets(evaluation: Evaluation) -> list[Sheet]:
    """Return a table for each poisoned dataset, with a column for each share of poisoned images, as in the paper."""
    contents = line_contents(evaluation.base_setting, evaluation.encoder_specs, lines_of_methods(evaluation.methods))
    return [
        Sheet(
            name=f"poison-{Path(other.partition('+')[2]).stem}",
            title=f"AUROC of the mixture against {dataset_name(other)}, by share of poisoned images",
            contents=one_line_per_map(contents),
            columns=[PoisonColumn(against=other, share=share) for share in SHARES],
        )
        for other in evaluation.against
    ]


COLUMNS: dict[str, Callable[[Evaluation], list[Column]]] = {
    "emprt": lambda _: [EmprtColumn(map_name=map_name) for map_name in MAP_NAMES],
    "ood": _ood_columns,
}
"""Metrics with columns of their own in the main table. Other metrics of maps and encoders need no entry here."""
SHEETS: dict[str, Callable[[Evaluation], list[Sheet]]] = {"codes": _codes_sheets, "poison": _poison_sheets}
"""Metrics with tables of their own."""
