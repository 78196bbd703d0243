"""Measures of how well a score separates unknown images from known ones, where it is known which are which.

    AUROC    the chance that an unknown image scores above a known one
    AUPR     Σ (recall_i − recall_{i−1}) · precision_i over all cuts i: the average precision in finding the unknown
    FPR95    the share of known images at or above the cut that finds 95 % of the unknown

Images whose scores tie are on the same side of every cut. Intervals are percentile bootstraps: both sets of images are
drawn again, with replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.metrics.metric import SetMetric
from repeat_xai.metrics.statistics import resample_ranges
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float

RESAMPLES = 1000


class Quality(NamedTuple):
    """The quality of a score that should be higher for unknown images."""

    auroc: float
    """Chance that an unknown image scores above a known one; 0.5 is guessing."""
    aupr: float
    """Average precision in finding the unknown images; their share of all images is guessing."""
    fpr95: float
    """Share of known images taken for unknown at the cut that finds 95 % of the unknown images."""


class Roc(NamedTuple):
    """The receiver operating characteristic: two shares at every cut, from the highest score down."""

    false: Float[Tensor, " cuts"]
    """Share of known images at or above the cut."""
    true: Float[Tensor, " cuts"]
    """Share of unknown images at or above the cut."""

    @property
    def area(self) -> float:
        """The area under the curve by the trapezoidal rule, which is the AUROC."""
        return float(torch.trapezoid(self.true, self.false))


def quality(known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"]) -> Quality:
    """Return AUROC, AUPR and FPR95 of the scores of known and of unknown images.

    Range of each: 0 to 1. Higher is better for AUROC and AUPR, lower for FPR95. Always defined: both sets must have an
    image and finite scores.

    >>> import torch
    >>> quality(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0]))
    Quality(auroc=1.0, aupr=1.0, fpr95=0.0)
    """
    _, values = _truth_and_scores(known, unknown)
    counts = [np.ones((1, len(scores))) for scores in (known, unknown)]
    return Quality(*(float(measure[0]) for measure in resampled_qualities(values, *counts)))


def resampled_qualities(
    values: Float[np.ndarray, " images"],
    known: Float[np.ndarray, "samples known"],
    unknown: Float[np.ndarray, "samples unknown"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return AUROC, AUPR and FPR95 of resamples of the images.

    `values` are the scores of all images, the known ones first; `known` and `unknown` say how often each resample holds
    each image.
    """
    order = np.argsort(-values, kind="stable")
    # A cut cannot lie between images with the same score: only the last of them ends a step.
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    zeros = np.zeros((len(known), 1))
    known_above, unknown_above = (
        np.concatenate((zeros, np.cumsum(counts[:, order], axis=1)[:, ends]), axis=1)
        for counts in (np.hstack((known, 0 * unknown)), np.hstack((0 * known, unknown)))
    )
    false, true = known_above / known_above[:, -1:], unknown_above / unknown_above[:, -1:]
    precision = unknown_above[:, 1:] / np.maximum(known_above[:, 1:] + unknown_above[:, 1:], 1)
    cut = np.argmax(true >= 0.95, axis=1)
    pairs = (np.diff(known_above, axis=1) * (unknown_above[:, 1:] + unknown_above[:, :-1])).sum(1)
    return (
        pairs / (2 * known_above[:, -1] * unknown_above[:, -1]),
        (np.diff(true, axis=1) * precision).sum(1),
        np.take_along_axis(false, cut[:, None], axis=1)[:, 0],
    )


def bootstrap_interval(
    known: Float[Tensor, " known"],
    unknown: Float[Tensor, " unknown"],
    measure: str,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int,
) -> tuple[float, float]:
    """Return the bootstrap interval of `auroc`, `aupr` or `fpr95`, over images drawn again from both sets.

    >>> import torch
    >>> bootstrap_interval(torch.arange(5.0), torch.arange(5.0) + 10, "auroc", seed=0)
    (1.0, 1.0)
    """
    choose("measure", measure, Quality._fields)
    at_least("resamples", resamples, 1)
    index = Quality._fields.index(measure)
    sets = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    values = np.concatenate(sets)
    # The words and numbers are parts of the random seed: others would give another interval.
    streams = [fold(seed, "bootstrap", kind, len(scores)) for kind, scores in enumerate(sets)]
    measured = []
    for start, stop in resample_ranges(resamples, len(values)):
        counts = (_counts(len(scores), stream, start, stop) for scores, stream in zip(sets, streams, strict=True))
        measured.append(resampled_qualities(values, *counts)[index])
    low, high = np.quantile(np.concatenate(measured), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counts(images: int, stream: int, start: int, stop: int) -> np.ndarray:
    """Return how often each resample from `start` to `stop` holds each image."""
    drawn = (uniforms(stream, start=start, stop=stop, width=images) * images).astype(int)
    counts = np.zeros((stop - start, images))
    np.add.at(counts, (np.repeat(np.arange(stop - start), images), drawn.ravel()), 1)
    return counts


def roc(known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"]) -> Roc:
    """Return the receiver operating characteristic: both shares at every cut that changes one of them.

    >>> import torch
    >>> roc(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 3.0])).true.tolist()
    [0.0, 0.5, 0.5, 1.0, 1.0]
    """
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(*_truth_and_scores(known, unknown), drop_intermediate=False)
    return Roc(torch.from_numpy(false), torch.from_numpy(true))


def _truth_and_scores(known: Tensor, unknown: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Return which of all images are unknown, as 0 and 1, and the scores of all images, the known ones first."""
    sets = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    if not all(len(scores) for scores in sets):
        raise ConfigurationError("both known and unknown images are needed to judge how well a score separates them")
    values = np.concatenate(sets)
    if not np.isfinite(values).all():
        raise ConfigurationError("a score is NaN or infinite")
    truth = np.repeat((0, 1), [len(scores) for scores in sets])
    return truth, values


NAMED = (
    SetMetric(
        name="ood",
        better="higher",
        description="out-of-distribution detection by uncertainty: AUROC, AUPR (average precision), and the "
        "false positive rate where 95 % of the other images are found",
        section="out-of-distribution detection, tables 2, 4; appendix table 4",
    ),
)
