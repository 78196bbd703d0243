"""Columns of a table: each says which rows it needs, and makes a number with its interval of them.

A score is looked up as METRIC.MAP; with binary votes importance is the share of votes, uncertainty its variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Protocol, final, runtime_checkable

import torch
from torch import Tensor

from repeat_xai.detect import BASELINES, bootstrapped, mixture, quality
from repeat_xai.detect.poison import detection
from repeat_xai.errors import ConfigurationError
from repeat_xai.evaluate import METRICS, Summary, summary
from repeat_xai.evaluate.emprt import Of, change
from repeat_xai.evaluate.metric import Direction
from repeat_xai.evaluate.randomise import Randomise
from repeat_xai.experiment.measures import Codes, Faithfulness, Maps, Measure, Robustness
from repeat_xai.experiment.setting import Setting
from repeat_xai.explain.votes import Votes
from repeat_xai.store import Row

OVER_IMAGES = "In brackets 95 % bootstrap intervals over images."
SHARES = tuple(share / 10 for share in range(9, 0, -1))
"""Of poisoned images, as the paper has them."""
NOTHING = Summary(None, None, None, None, 0, 0)
"""Where nothing can be said."""
BINARY = {"importance": "vote_share", "uncertainty": "vote_variance"}
SIGNS = {"importance": "I", "uncertainty": "U"}


class Case(NamedTuple):
    """A line of a table under one encoder: what is explained, how, and which votes are read."""

    setting: Setting
    votes: Votes = "weighted"
    of: Of = "uncertainty"
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
    of: Of = "importance"
    measure: Measure = Maps()
    direction: Direction = "neither"
    first: int | None = None
    """Of how many images, if not of all."""

    @property
    def title(self) -> str:
        few = "" if self.first is None else f", first {self.first} images"
        return f"{self.metric.replace('_', ' ')} ({SIGNS[self.of]}{few})"

    @property
    def better(self) -> Direction:
        return METRICS[self.metric].better if self.metric in METRICS else self.direction

    def settings(self, case: Case) -> tuple[Setting, ...]:
        return (replace(case.setting, measure=self.measure, first=self.first),)

    def values(self, case: Case, found: Found) -> Tensor:
        return scores(found(*self.settings(case)), f"{self.metric}.{_map(self.of, case)}")

    def cell(self, case: Case, found: Found) -> Summary:
        return summary(self.values(case, found))


@final
@dataclass(frozen=True, kw_only=True)
class Emprt:
    """The sanity check: relative change of a map's histogram entropy when the encoder loses its training."""

    better: ClassVar[Direction] = "higher"
    interval: ClassVar[str] = OVER_IMAGES
    of: Of = "uncertainty"
    randomise: Randomise = "quantus"

    @property
    def title(self) -> str:
        how = "" if self.randomise == "quantus" else f", {self.randomise}"
        return f"eMPRT ({SIGNS[self.of]}{how})"

    def settings(self, case: Case) -> tuple[Setting, ...]:
        blank = replace(case.setting.network, randomise=self.randomise)
        return (case.setting, replace(case.setting, network=blank))

    def values(self, case: Case, found: Found) -> Tensor:
        name = f"resolved_entropy.{_map(self.of, case)}"
        trained, random = (scores(found(setting), name) for setting in self.settings(case))
        return change(trained, random)

    def cell(self, case: Case, found: Found) -> Summary:
        return summary(self.values(case, found))


Judge = Literal["auroc", "posterior", "aupr", "fpr95"]
JUDGES: dict[Judge, tuple[str, Direction]] = {
    "auroc": ("AUROC", "higher"),
    "posterior": ("AUROC of the mixture", "higher"),
    "aupr": ("AUPR", "higher"),
    "fpr95": ("FPR at 95 %", "lower"),
}


@final
@dataclass(frozen=True, kw_only=True)
class Detection:
    """How well an image's aggregated map, or its code by a baseline, tells another dataset from this one."""

    interval: ClassVar[str] = OVER_IMAGES
    against: str
    by: Judge = "auroc"
    of: Of = "uncertainty"
    aggregate: str = "mean"
    baseline: str | None = None
    """Judge the codes alone, by this, against the first half of the dataset."""

    @property
    def title(self) -> str:
        what = SIGNS[self.of] if self.baseline is None else f"codes, {self.baseline}"
        return f"{JUDGES[self.by][0]} against {self.against} ({what})"

    @property
    def better(self) -> Direction:
        return JUDGES[self.by][1]

    def settings(self, case: Case) -> tuple[Setting, ...]:
        known = case.setting if self.baseline is None else replace(case.setting, measure=Codes())
        return (known, replace(known, dataset=self.against))

    def values(self, case: Case, found: Found) -> None:
        return None

    def cell(self, case: Case, found: Found) -> Summary:
        try:
            known, unknown = self.scores(case, found)
        except ConfigurationError:  # too few codes to judge others by
            return NOTHING
        undefined = int((~known.isfinite()).sum() + (~unknown.isfinite()).sum())
        if self.baseline is not None:
            undefined += sum(row is None for setting in self.settings(case) for row in found(setting))
        known, unknown = known[known.isfinite()], unknown[unknown.isfinite()]
        if not len(known) or not len(unknown):
            return NOTHING._replace(undefined=undefined)
        if self.by == "posterior":
            try:
                split = mixture(torch.cat((known, unknown)), seed=case.setting.seed)
            except ConfigurationError:
                return NOTHING._replace(images=len(known) + len(unknown), undefined=undefined)
            known, unknown = split.log_odds(known), split.log_odds(unknown)
        judge = "auroc" if self.by == "posterior" else self.by
        value = getattr(quality(known, unknown), judge)
        low, high = bootstrapped(known, unknown, judge, seed=case.setting.seed)
        return Summary(value, None, low, high, len(known) + len(unknown), undefined)

    def scores(self, case: Case, found: Found) -> tuple[Tensor, Tensor]:
        """Of the known images and of the others."""
        rows = [found(setting) for setting in self.settings(case)]
        if self.baseline is None:
            name = f"{self.aggregate}.{_map(self.of, case)}"
            known, unknown = (scores(some, name) for some in rows)
            return known, unknown
        reference, *others = _codes(rows)
        judge = BASELINES[self.baseline]
        half = len(reference) // 2
        first, rest = reference[:half], reference[half:]
        return judge(rest, first), judge(others[0], first)


def scores(rows: Sequence[Row | None], name: str) -> Tensor:
    """One score of each row, NaN where there is none."""
    found = [float("nan") if row is None else row.scores.get(name, float("nan")) for row in rows]
    return torch.tensor(found, dtype=torch.float64)


def _codes(sets: Sequence[Sequence[Row | None]]) -> list[Tensor]:
    return [torch.tensor([row.code for row in rows if row is not None], dtype=torch.float64) for rows in sets]


def _map(of: Of, case: Case) -> str:
    return BINARY[of] if case.votes == "binary" else of


ROBUSTNESS = Mean(metric="local_lipschitz", measure=Robustness(), direction="lower")
FAITHFULNESS = {
    "deletion": Mean(metric="deletion", measure=Faithfulness(way="deletion"), direction="lower"),
    "insertion": Mean(metric="insertion", measure=Faithfulness(way="insertion"), direction="higher"),
}


@final
@dataclass(frozen=True, kw_only=True)
class Poison:
    """How well an image's aggregated map tells poisoned images from clean ones, so many of them being poisoned."""

    better: ClassVar[Direction] = "higher"
    interval: ClassVar[str] = "In brackets 95 % of the draws of which images are poisoned."
    against: str
    share: float

    @property
    def title(self) -> str:
        return f"{self.share:.0%}"

    def settings(self, case: Case) -> tuple[Setting, ...]:
        return (case.setting, replace(case.setting, dataset=self.against))

    def values(self, case: Case, found: Found) -> None:
        return None

    def cell(self, case: Case, found: Found) -> Summary:
        name = f"mean.{_map(case.of, case)}"
        clean, poisoned = (scores(found(setting), name) for setting in self.settings(case))
        if len(clean) != len(poisoned):
            raise ConfigurationError(f"{self.against} has not the same images as {case.setting.dataset}")
        there = clean.isfinite() & poisoned.isfinite()
        try:
            told = detection(clean[there], poisoned[there], share=self.share, seed=case.setting.seed).posterior
        except ConfigurationError:
            told = NOTHING._replace(images=int(there.sum()))
        return told._replace(undefined=int((~there).sum()))


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
