"""Columns of a table that say how well maps or codes tell other images from those of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.columns import NOTHING, OVER_IMAGES, SIGNS, Case, Found, map_of, scores
from repeat_xai.experiments.measures import Codes
from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.metrics import Summary
from repeat_xai.metrics.detection import CODE_SCORES, bootstrap_interval, detect_poison, mixture, quality
from repeat_xai.metrics.metric import Direction, MapName

SHARES = tuple(share / 10 for share in range(9, 0, -1))
"""Shares of poisoned images that the paper reports."""
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
    of: MapName = "uncertainty"
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

    def needs(self, case: Case) -> tuple[str, ...]:
        return (f"{self.aggregate}.{map_of(self.of, case)}",) if self.baseline is None else ()

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
        low, high = bootstrap_interval(known, unknown, judge, seed=case.setting.seed)
        return Summary(value, None, low, high, len(known) + len(unknown), undefined)

    def scores(self, case: Case, found: Found) -> tuple[Tensor, Tensor]:
        """Of the known images and of the others."""
        rows = [found(setting) for setting in self.settings(case)]
        if self.baseline is None:
            (name,) = self.needs(case)
            known, unknown = (scores(some, name) for some in rows)
            return known, unknown
        reference, *others = _codes(rows)
        judge = CODE_SCORES[self.baseline]
        half = len(reference) // 2
        first, rest = reference[:half], reference[half:]
        return judge(rest, first), judge(others[0], first)


def _codes(sets: Sequence[Sequence[Row | None]]) -> list[Tensor]:
    return [torch.tensor([row.code for row in rows if row is not None], dtype=torch.float64) for rows in sets]


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

    def needs(self, case: Case) -> tuple[str, ...]:
        return (f"mean.{map_of(case.of, case)}",)

    def values(self, case: Case, found: Found) -> None:
        return None

    def cell(self, case: Case, found: Found) -> Summary:
        (name,) = self.needs(case)
        clean, poisoned = (scores(found(setting), name) for setting in self.settings(case))
        if len(clean) != len(poisoned):
            raise ConfigurationError(f"{self.against} has not the same images as {case.setting.dataset}")
        there = clean.isfinite() & poisoned.isfinite()
        try:
            told = detect_poison(clean[there], poisoned[there], share=self.share, seed=case.setting.seed).posterior
        except ConfigurationError:
            told = NOTHING._replace(images=int(there.sum()))
        return told._replace(undefined=int((~there).sum()))
