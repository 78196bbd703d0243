"""Columns of a table: each names the rows that it needs, and makes a number with its interval from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, final, runtime_checkable

import torch
from torch import Tensor

from repeat_xai.experiments.map_scores import MapScores
from repeat_xai.experiments.measures import EncoderScores, Measure
from repeat_xai.experiments.row_scores import LineContent, RowsOf, score_name, scores_of_rows
from repeat_xai.experiments.settings import Setting
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics import METRICS, EncoderMetric, Summary, summary
from repeat_xai.metrics.emprt import relative_change
from repeat_xai.metrics.metric import Direction, MapName, ScoredMap
from repeat_xai.metrics.randomisation import Randomise

OVER_IMAGES = "Brackets hold 95 % bootstrap intervals over images."
UNDEFINED = Summary(None, None, None, None, 0, 0)
"""The summary of a column that has no value for a line."""
MAP_SIGNS = {"importance": "I", "uncertainty": "U", "vote_share": "votes"}
"""The sign of each map in the titles of columns."""


@runtime_checkable
class Column(Protocol):
    """A column of a table, which has one number for each line."""

    @property
    def title(self) -> str: ...
    @property
    def better(self) -> Direction: ...
    @property
    def interval_note(self) -> str:
        """A sentence that says what interval or deviation is printed beside each number."""
        ...

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the settings whose rows the column needs for a line."""
        ...

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the names of the scores of maps that the column reads from each of these rows."""
        ...

    def values(self, content: LineContent, rows_of: RowsOf) -> Tensor | None:
        """Return the value of each image, or None if the number is not a mean over images."""
        ...

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return the number of a line, with its interval and the number of images behind it."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class MeanColumn:
    """The mean of a score over images."""

    interval_note: ClassVar[str] = OVER_IMAGES
    metric: str
    map_name: ScoredMap = "importance"
    measure: Measure = MapScores()
    """The measure that makes rows with this score."""
    max_images: int | None = None
    """Number of images that are used; None uses all."""

    @property
    def title(self) -> str:
        limit = "" if self.max_images is None else f", first {self.max_images} images"
        return f"{self.metric.replace('_', ' ')} ({MAP_SIGNS[self.map_name]}{limit})"

    @property
    def better(self) -> Direction:
        return METRICS[self.metric].better

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the setting of the line with the column's measure, or none if the metric cannot judge the method."""
        if not can_judge(self.metric, content.setting.method):
            return ()
        return (replace(content.setting, measure=self.measure, max_images=self.max_images),)

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the score's name if it is a score of a map; an encoder metric has rows of its own."""
        return (self._score_name(content),) if isinstance(self.measure, MapScores) else ()

    def values(self, content: LineContent, rows_of: RowsOf) -> Tensor | None:
        """Return the score of each image, or None if the metric cannot judge the method."""
        settings = self.settings(content)
        return scores_of_rows(rows_of(*settings), self._score_name(content)) if settings else None

    def _score_name(self, content: LineContent) -> str:
        return score_name(self.metric, self.map_name, content.votes)

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return the mean over the images that have the score."""
        values = self.values(content, rows_of)
        return UNDEFINED if values is None else summary(values)


def can_judge(metric: str, method: Method) -> bool:
    """Return whether a metric can judge a method; calibration needs votes, which only REPEAT casts."""
    description = METRICS.get(metric)
    needs_votes = isinstance(description, EncoderMetric) and description.needs == "votes"
    return isinstance(method, Repeat) or not needs_votes


def encoder_columns(metric: EncoderMetric, *, draws: int) -> list[MeanColumn]:
    """Return a column for each map that an encoder metric judges; `draws` is for those metrics that draw."""
    measure = EncoderScores.of(metric).with_draws(draws)
    return [MeanColumn(metric=metric.name, map_name=map_name, measure=measure) for map_name in metric.maps]


@final
@dataclass(frozen=True, kw_only=True)
class EmprtColumn:
    """The sanity check eMPRT: the relative change of a map's histogram entropy when the encoder is randomised."""

    better: ClassVar[Direction] = "higher"
    interval_note: ClassVar[str] = OVER_IMAGES
    map_name: MapName = "uncertainty"
    randomise: Randomise = "quantus"
    """The way in which the weights are randomised."""

    @property
    def title(self) -> str:
        way = "" if self.randomise == "quantus" else f", {self.randomise}"
        return f"eMPRT ({MAP_SIGNS[self.map_name]}{way})"

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the setting of the line with the trained encoder, and with the randomised one."""
        randomised = replace(content.setting.encoder_spec, randomise=self.randomise)
        return (content.setting, replace(content.setting, encoder_spec=randomised))

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the name of the map's entropy."""
        return (score_name("resolved_entropy", self.map_name, content.votes),)

    def values(self, content: LineContent, rows_of: RowsOf) -> Tensor:
        """Return the relative change of each image."""
        (name,) = self.score_names(content)
        trained, randomised = (scores_of_rows(rows_of(setting), name) for setting in self.settings(content))
        return relative_change(trained, randomised)

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return the mean of the relative change over images."""
        return summary(self.values(content, rows_of))


@final
@dataclass(frozen=True, kw_only=True)
class RunsColumn:
    """The mean of another column's number over runs with different seeds, and its deviation."""

    interval_note: ClassVar[str] = "± is the standard deviation over runs."
    column: Column
    runs: int

    @property
    def title(self) -> str:
        return f"{self.column.title}, {self.runs} runs"

    @property
    def better(self) -> Direction:
        return self.column.better

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the settings of every run."""
        return tuple(setting for run in self._runs(content) for setting in self.column.settings(run))

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the names of the scores that the other column reads."""
        return self.column.score_names(content)

    def values(self, content: LineContent, rows_of: RowsOf) -> None:
        """Return None, because the number is a mean over runs and not over images."""

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return the mean of the runs' numbers and their deviation, or no number if a run has none."""
        runs = [self.column.summarise(run, rows_of) for run in self._runs(content)]
        means = [run.mean for run in runs if run.mean is not None]
        images, undefined = min(run.images for run in runs), sum(run.undefined for run in runs)
        if len(means) < self.runs:
            return UNDEFINED._replace(images=images, undefined=undefined)
        over_runs = summary(torch.tensor(means, dtype=torch.float64))
        return over_runs._replace(low=None, high=None, images=images, undefined=undefined)

    def _runs(self, content: LineContent) -> list[LineContent]:
        seed = content.setting.seed
        return [content._replace(setting=replace(content.setting, seed=seed + run)) for run in range(self.runs)]
