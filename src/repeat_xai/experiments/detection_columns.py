"""Columns of a table that say how well maps or codes distinguish other images from those of a dataset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

import torch
from torch import Tensor

from repeat_xai.data.open_dataset import dataset_name
from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.columns import MAP_SIGNS, OVER_IMAGES, UNDEFINED
from repeat_xai.experiments.measures import Codes
from repeat_xai.experiments.row_scores import LineContent, RowsOf, score_name, scores_of_rows
from repeat_xai.experiments.settings import Setting
from repeat_xai.metrics import Summary
from repeat_xai.metrics.detection import CODE_SCORES, bootstrap_interval, detect_poison, mixture, quality
from repeat_xai.metrics.metric import Direction, MapName

SHARES = tuple(share / 10 for share in range(9, 0, -1))
"""Shares of poisoned images that the paper reports."""
Criterion = Literal["auroc", "posterior", "aupr", "fpr95"]
CRITERIA: dict[Criterion, tuple[str, Direction]] = {
    "auroc": ("AUROC", "higher"),
    "posterior": ("AUROC of the mixture", "higher"),
    "aupr": ("AUPR", "higher"),
    "fpr95": ("FPR at 95 %", "lower"),
}
"""The title of each criterion of detection, and which of its values are better."""


@final
@dataclass(frozen=True, kw_only=True)
class DetectionColumn:
    """A column that says how well the aggregate of a map distinguishes another dataset's images from this one's."""

    interval_note: ClassVar[str] = OVER_IMAGES
    against: str
    """The dataset whose images are to be detected."""
    criterion: Criterion = "auroc"
    map_name: MapName = "uncertainty"
    aggregate: str = "mean"
    """The name of the function that turns a map into one number."""

    @property
    def title(self) -> str:
        return f"{CRITERIA[self.criterion][0]} against {dataset_name(self.against)} ({MAP_SIGNS[self.map_name]})"

    @property
    def better(self) -> Direction:
        return CRITERIA[self.criterion][1]

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the setting of the line with its own dataset, and with the other one."""
        return (content.setting, replace(content.setting, dataset=self.against))

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the name of the map's aggregate."""
        return (score_name(self.aggregate, self.map_name, content.votes),)

    def values(self, content: LineContent, rows_of: RowsOf) -> None:
        """Return None, because the number is about all images together."""

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return the criterion with its bootstrap interval; images without a score are left out and counted."""
        return _judge(*self.scores(content, rows_of), self.criterion, seed=content.setting.seed)

    def scores(self, content: LineContent, rows_of: RowsOf) -> tuple[Tensor, Tensor]:
        """Return the scores of the images of the dataset, and of those of the other dataset."""
        (name,) = self.score_names(content)
        known, unknown = (scores_of_rows(rows_of(setting), name) for setting in self.settings(content))
        return known, unknown


@final
@dataclass(frozen=True, kw_only=True)
class CodeDetectionColumn:
    """A column that says how well codes alone, without any map, distinguish another dataset's images from this one's.

    The first half of the dataset is the reference that all other codes are compared with.
    """

    better: ClassVar[Direction] = "higher"
    interval_note: ClassVar[str] = OVER_IMAGES
    against: str
    """The dataset whose images are to be detected."""
    code_score: str
    """The name of the function that scores how unusual a code is."""

    @property
    def title(self) -> str:
        return f"AUROC against {dataset_name(self.against)} (codes, {self.code_score})"

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the settings of the codes of both datasets."""
        known = replace(content.setting, measure=Codes())
        return (known, replace(known, dataset=self.against))

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return no names, because the rows hold codes and no scores of maps."""
        return ()

    def values(self, content: LineContent, rows_of: RowsOf) -> None:
        """Return None, because the number is about all images together."""

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return AUROC with its bootstrap interval, or no number if there are too few codes to compare with."""
        try:
            known, unknown = self.scores(content, rows_of)
        except ConfigurationError:
            return UNDEFINED
        failed = sum(row is None for setting in self.settings(content) for row in rows_of(setting))
        return _judge(known, unknown, "auroc", seed=content.setting.seed, failed=failed)

    def scores(self, content: LineContent, rows_of: RowsOf) -> tuple[Tensor, Tensor]:
        """Return the scores of the second half of the dataset, and of the images of the other dataset."""
        codes, others = (
            torch.tensor([row.code for row in rows_of(setting) if row is not None], dtype=torch.float64)
            for setting in self.settings(content)
        )
        score = CODE_SCORES[self.code_score]
        half = len(codes) // 2
        reference, known = codes[:half], codes[half:]
        return score(known, reference), score(others, reference)


def _judge(known: Tensor, unknown: Tensor, criterion: Criterion, *, seed: int, failed: int = 0) -> Summary:
    """Return how well scores distinguish unknown images from known ones, with its bootstrap interval.

    Images without a finite score are left out. They count as undefined, and so do the `failed` images that have no
    score at all.
    """
    undefined = failed + int((~known.isfinite()).sum() + (~unknown.isfinite()).sum())
    known, unknown = known[known.isfinite()], unknown[unknown.isfinite()]
    if not len(known) or not len(unknown):
        return UNDEFINED._replace(undefined=undefined)
    if criterion == "posterior":
        try:
            split = mixture(torch.cat((known, unknown)), seed=seed)
        except ConfigurationError:  # there are too few images for a mixture
            return UNDEFINED._replace(images=len(known) + len(unknown), undefined=undefined)
        known, unknown = split.log_odds(known), split.log_odds(unknown)
    measured = "auroc" if criterion == "posterior" else criterion
    value = getattr(quality(known, unknown), measured)
    low, high = bootstrap_interval(known, unknown, measured, seed=seed)
    return Summary(value, None, low, high, len(known) + len(unknown), undefined)


@final
@dataclass(frozen=True, kw_only=True)
class PoisonColumn:
    """A column that says how well the mean of the line's map distinguishes poisoned images from clean ones."""

    better: ClassVar[Direction] = "higher"
    interval_note: ClassVar[str] = "Brackets hold 95 % of the draws of which images are poisoned."
    against: str
    """The dataset with poisoned images."""
    share: float
    """Share of the images that are poisoned."""

    @property
    def title(self) -> str:
        return f"{self.share:.0%}"

    def settings(self, content: LineContent) -> tuple[Setting, ...]:
        """Return the setting of the line with the clean images, and with the poisoned ones."""
        return (content.setting, replace(content.setting, dataset=self.against))

    def score_names(self, content: LineContent) -> tuple[str, ...]:
        """Return the name of the map's mean."""
        return (score_name("mean", content.map_name, content.votes),)

    def values(self, content: LineContent, rows_of: RowsOf) -> None:
        """Return None, because the number is about all images together."""

    def summarise(self, content: LineContent, rows_of: RowsOf) -> Summary:
        """Return AUROC of the mixture's posterior over several draws of which images are poisoned."""
        (name,) = self.score_names(content)
        clean, poisoned = (scores_of_rows(rows_of(setting), name) for setting in self.settings(content))
        if len(clean) != len(poisoned):
            raise ConfigurationError(f"{self.against} and {content.setting.dataset} do not have the same images")
        defined = clean.isfinite() & poisoned.isfinite()
        try:
            detection = detect_poison(clean[defined], poisoned[defined], share=self.share, seed=content.setting.seed)
            posterior = detection.posterior
        except ConfigurationError:  # there are too few images for a mixture
            posterior = UNDEFINED._replace(images=int(defined.sum()))
        return posterior._replace(undefined=int((~defined).sum()))
