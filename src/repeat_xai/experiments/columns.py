"""Columns of a table: each says which rows it needs, and makes a number with its interval of them.

A score is looked up as METRIC.MAP; with binary votes importance is the share of votes, uncertainty its variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol, final, runtime_checkable

import torch
from torch import Tensor

from repeat_xai.experiments.measures import EncoderScores, MapScores, Measure
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.votes import Votes
from repeat_xai.metrics import METRICS, EncoderMetric, Summary, summary
from repeat_xai.metrics.emprt import relative_change
from repeat_xai.metrics.metric import Direction, MapName, ScoredMap
from repeat_xai.metrics.randomisation import Randomise

OVER_IMAGES = "In brackets 95 % bootstrap intervals over images."
NOTHING = Summary(None, None, None, None, 0, 0)
"""Where nothing can be said."""
BINARY = {"importance": "vote_share", "uncertainty": "vote_variance"}
SIGNS = {"importance": "I", "uncertainty": "U", "vote_share": "votes"}


class Case(NamedTuple):
    """A line of a table under one encoder: what is explained, how, and which votes are read."""

    setting: Setting
    votes: Votes = "weighted"
    of: MapName = "uncertainty"
    """Which map a line is about, where that is not a column's to say."""


Found = Callable[[Setting], Sequence[Row | None]]
"""The rows of a setting in the order of its images; None where one is missing or failed."""


@runtime_checkable
class Column(Protocol):
    """A number of a table."""

    @property
    def title(self) -> str: ...
    @property
    def better(self) -> Direction: ...
    @property
    def interval(self) -> str:
        """What stands in brackets beside it."""
        ...

    def settings(self, case: Case) -> tuple[Setting, ...]:
        """Whose rows it needs."""
        ...

    def needs(self, case: Case) -> tuple[str, ...]:
        """Return the names of the scores of maps that it reads of every row."""
        ...

    def values(self, case: Case, found: Found) -> Tensor | None:
        """A value an image, where it is a mean of such."""
        ...

    def cell(self, case: Case, found: Found) -> Summary:
        """The number."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class Mean:
    """A score's mean over images."""

    interval: ClassVar[str] = OVER_IMAGES
    metric: str
    of: ScoredMap = "importance"
    measure: Measure = MapScores()
    first: int | None = None
    """Of how many images, if not of all."""

    @property
    def title(self) -> str:
        few = "" if self.first is None else f", first {self.first} images"
        return f"{self.metric.replace('_', ' ')} ({SIGNS[self.of]}{few})"

    @property
    def better(self) -> Direction:
        return METRICS[self.metric].better

    def settings(self, case: Case) -> tuple[Setting, ...]:
        if not can_judge(self.metric, case.setting.method):
            return ()
        return (replace(case.setting, measure=self.measure, first=self.first),)

    def needs(self, case: Case) -> tuple[str, ...]:
        return (self._score(case),) if isinstance(self.measure, MapScores) else ()

    def values(self, case: Case, found: Found) -> Tensor | None:
        settings = self.settings(case)
        return scores(found(*settings), self._score(case)) if settings else None

    def _score(self, case: Case) -> str:
        return f"{self.metric}.{map_of(self.of, case)}"

    def cell(self, case: Case, found: Found) -> Summary:
        values = self.values(case, found)
        return NOTHING if values is None else summary(values)


def can_judge(metric: str, method: Method) -> bool:
    """Return whether a metric can judge a method; calibration needs votes, which only REPEAT casts."""
    described = METRICS.get(metric)
    needs_votes = isinstance(described, EncoderMetric) and described.needs == "votes"
    return isinstance(method, Repeat) or not needs_votes


@final
@dataclass(frozen=True, kw_only=True)
class Emprt:
    """The sanity check: relative change of a map's histogram entropy when the encoder loses its training."""

    better: ClassVar[Direction] = "higher"
    interval: ClassVar[str] = OVER_IMAGES
    of: MapName = "uncertainty"
    randomise: Randomise = "quantus"

    @property
    def title(self) -> str:
        how = "" if self.randomise == "quantus" else f", {self.randomise}"
        return f"eMPRT ({SIGNS[self.of]}{how})"

    def settings(self, case: Case) -> tuple[Setting, ...]:
        blank = replace(case.setting.encoder_spec, randomise=self.randomise)
        return (case.setting, replace(case.setting, encoder_spec=blank))

    def needs(self, case: Case) -> tuple[str, ...]:
        return (f"resolved_entropy.{map_of(self.of, case)}",)

    def values(self, case: Case, found: Found) -> Tensor:
        (name,) = self.needs(case)
        trained, random = (scores(found(setting), name) for setting in self.settings(case))
        return relative_change(trained, random)

    def cell(self, case: Case, found: Found) -> Summary:
        return summary(self.values(case, found))


def scores(rows: Sequence[Row | None], name: str) -> Tensor:
    """One score of each row, NaN where there is none."""
    found = [float("nan") if row is None else row.scores.get(name, float("nan")) for row in rows]
    return torch.tensor(found, dtype=torch.float64)


def map_of(of: ScoredMap, case: Case) -> str:
    """Return the name under which a row has scores of this map, for the votes of this case."""
    return BINARY.get(of, of) if case.votes == "binary" else of


def encoder_columns(metric: EncoderMetric, *, draws: int) -> list[Column]:
    """Return a column for each map that an encoder metric judges; `draws` is for those metrics that draw."""
    measure = EncoderScores.of(metric).with_draws(draws)
    return [Mean(metric=metric.name, of=of, measure=measure) for of in metric.maps]


@final
@dataclass(frozen=True, kw_only=True)
class OverRuns:
    """Another column's number, its mean and deviation over runs that differ in their seed."""

    interval: ClassVar[str] = "After ± the deviation over runs."
    column: Column
    runs: int

    @property
    def title(self) -> str:
        return f"{self.column.title}, {self.runs} runs"

    @property
    def better(self) -> Direction:
        return self.column.better

    def settings(self, case: Case) -> tuple[Setting, ...]:
        return tuple(setting for one in self._runs(case) for setting in self.column.settings(one))

    def needs(self, case: Case) -> tuple[str, ...]:
        return self.column.needs(case)

    def values(self, case: Case, found: Found) -> None:
        return None

    def cell(self, case: Case, found: Found) -> Summary:
        runs = [self.column.cell(one, found) for one in self._runs(case)]
        means = [run.mean for run in runs if run.mean is not None]
        images, undefined = min(run.images for run in runs), sum(run.undefined for run in runs)
        if len(means) < self.runs:
            return NOTHING._replace(images=images, undefined=undefined)
        over = summary(torch.tensor(means, dtype=torch.float64))
        return over._replace(low=None, high=None, images=images, undefined=undefined)

    def _runs(self, case: Case) -> list[Case]:
        seed = case.setting.seed
        return [case._replace(setting=replace(case.setting, seed=seed + run)) for run in range(self.runs)]
