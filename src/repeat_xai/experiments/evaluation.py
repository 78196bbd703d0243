"""Methods × encoders × metrics on a dataset: the sheets to be filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from repeat_xai.data.images import ImageProtocol
from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.experiments.columns import Column, Emprt, Mean, OverRuns, can_judge, encoder_columns
from repeat_xai.experiments.detection_columns import JUDGES, SHARES, Detection, Poison
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.experiments.table import Sheet, cases, distinct, lines_of
from repeat_xai.methods.base import Method
from repeat_xai.metrics import METRICS, EncoderMetric, MapMetric, SetMetric
from repeat_xai.metrics.detection import AGGREGATES, CODE_SCORES
from repeat_xai.metrics.metric import MAP_NAMES
from repeat_xai.seeds import expect_seed

MOST_RUNS = 1000


@final
@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is asked for."""

    dataset: str
    against: tuple[str, ...] = ()
    """Datasets to be told from it."""
    encoder_specs: tuple[EncoderSpec, ...] = (EncoderSpec(),)
    methods: Mapping[str, Method] = field(hash=False)
    metrics: tuple[str, ...] = ("complexity",)
    baseline: str | None = None
    """The method that the others are compared with."""
    protocol: ImageProtocol = "paper"
    seed: int = 0
    runs: int = 1
    """How often, with other seeds; if more than once, the deviation over them is told as well."""
    draws: int = 200
    """Disturbances of an image, for robustness."""
    aggregate: str = "mean"
    """A map's uncertainty in a number, for `ood`."""

    def __post_init__(self) -> None:
        at_least("runs", self.runs, 1, MOST_RUNS)
        at_least("draws", self.draws, 1)
        expect_seed(self.seed)
        for name in self.metrics:
            choose("metric", name, METRICS)
        if not self.against and (asked := [name for name in self.metrics if isinstance(METRICS[name], SetMetric)]):
            raise ConfigurationError(f"{', '.join(asked)}: compares datasets; say which by --against")
        distinct(self.encoder_specs)
        names = [Path(name).name for name in (self.dataset, *self.against)]
        if len(set(names)) < len(names):
            raise ConfigurationError(f"two datasets have the same name among {', '.join(names)}; rename one")
        onnx = any(spec.name.startswith("onnx:") for spec in self.encoder_specs)
        for name in self.metrics:
            metric = METRICS[name]
            if onnx and isinstance(metric, EncoderMetric) and metric.needs == "weights":
                raise ConfigurationError(f"{name} randomises weights, which an ONNX file does not allow; leave one out")
            if not any(can_judge(name, method) for method in self.methods.values()):
                raise ConfigurationError(f"{name} judges votes, and none of the methods casts any; add REPEAT")
        poisoned = self.dataset == "cifar10" and all(name.startswith("cifar10+") for name in self.against)
        if "poison" in self.metrics and not poisoned:
            raise ConfigurationError("poison needs --dataset cifar10 and poisoned ones, as cifar10+tap, in --against")
        choose("aggregate", self.aggregate, AGGREGATES)
        if self.baseline is not None:
            choose("baseline", self.baseline, self.methods)

    @property
    def base(self) -> Setting:
        """What all settings have in common."""
        first = next(iter(self.methods.values()))
        return Setting(dataset=self.dataset, method=first, protocol=self.protocol, seed=self.seed)

    @property
    def sheets(self) -> list[Sheet]:
        """The main table, and one for each metric that asks for its own."""
        columns = [column for name in self.metrics for column in self._columns(name)]
        if self.runs > 1:
            columns += [OverRuns(column=column, runs=self.runs) for column in columns]
        found = [sheet for name in self.metrics if name in SHEETS for sheet in SHEETS[name](self)]
        if columns:
            lines = cases(self.base, self.encoder_specs, lines_of(self.methods))
            title = f"Methods on {self.dataset}"
            found.insert(0, Sheet(name="evaluation", title=title, cases=lines, columns=columns, baseline=self.baseline))
        return found

    def _columns(self, name: str) -> list[Column]:
        """Those of the main table that a metric asks for."""
        metric = METRICS[name]
        if name in COLUMNS:
            return COLUMNS[name](self)
        if isinstance(metric, EncoderMetric):
            return encoder_columns(metric, draws=self.draws)
        if isinstance(metric, MapMetric):
            maps = MAP_NAMES if metric.needs == "map" else MAP_NAMES[:1]
            return [Mean(metric=name, of=of) for of in maps]
        return []


def _ood(asked: Evaluation) -> list[Column]:
    return [Detection(against=other, by=by, aggregate=asked.aggregate) for other in asked.against for by in JUDGES]


def _codes(asked: Evaluation) -> list[Sheet]:
    """The codes alone, without any explanation."""
    sheet = Sheet(
        name="codes",
        title=f"Codes alone, {asked.dataset} against others; the first half of it is the reference",
        cases=cases(asked.base, asked.encoder_specs, lines_of({"codes": asked.base.method})[:1]),
        columns=[Detection(against=other, baseline=name) for other in asked.against for name in CODE_SCORES],
    )
    return [sheet]


def _poison(asked: Evaluation) -> list[Sheet]:
    """By share of poisoned images, as the paper's appendix has it."""
    lines = cases(asked.base, asked.encoder_specs, lines_of(asked.methods))
    both = {(e, f"{label}, {of}"): case._replace(of=of) for (e, label), case in lines.items() for of in MAP_NAMES}
    return [
        Sheet(
            name=f"poison-{Path(other.partition('+')[2]).stem}",
            title=f"AUROC of the mixture against {other}, by share of poisoned images",
            cases=both,
            columns=[Poison(against=other, share=share) for share in SHARES],
        )
        for other in asked.against
    ]


COLUMNS: dict[str, Callable[[Evaluation], list[Column]]] = {
    "emprt": lambda _: [Emprt(of=of) for of in MAP_NAMES],
    "ood": _ood,
}
"""Metrics with columns of their own in the main table. Other metrics of maps and encoders need no entry here."""
SHEETS: dict[str, Callable[[Evaluation], list[Sheet]]] = {"codes": _codes, "poison": _poison}
"""Metrics with tables of their own."""
