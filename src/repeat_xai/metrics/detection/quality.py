"""How well a score tells unknown images from known ones, where it is known which are which."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError

if TYPE_CHECKING:
    from jaxtyping import Float


class Quality(NamedTuple):
    """Of a score that should be higher for what is unknown."""

    auroc: float
    """Chance that an unknown image scores above a known one; ½ is guessing."""
    aupr: float
    """Average precision in finding the unknown; their share is guessing."""
    fpr95: float
    """Share of known images called unknown at the cut that finds 95 % of the unknown."""


class Roc(NamedTuple):
    """Of the same, at every cut from the highest score down."""

    false: Float[Tensor, " cuts"]
    """Share of known images at or above the cut."""
    true: Float[Tensor, " cuts"]
    """Share of unknown images at or above it."""

    @property
    def area(self) -> float:
        """Under the curve, by trapezia: the AUROC."""
        return float(torch.trapezoid(self.true, self.false))


def quality(known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"]) -> Quality:
    """Of the scores of known and of unknown images.

    >>> import torch
    >>> quality(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0]))
    Quality(auroc=1.0, aupr=1.0, fpr95=0.0)
    """
    _, values = _told(known, unknown)
    once = [np.ones((1, len(part))) for part in (known, unknown)]
    return Quality(*(float(part[0]) for part in qualities(values, *once)))


def qualities(
    values: Float[np.ndarray, " images"],
    known: Float[np.ndarray, "samples known"],
    unknown: Float[np.ndarray, "samples unknown"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """AUROC, AUPR and FPR at 95 % of samples of the images: how often each is in it, the known ones first."""
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # scores that tie are told apart by none
    nothing = np.zeros((len(known), 1))
    here, there = (
        np.concatenate((nothing, np.cumsum(part[:, order], axis=1)[:, ends]), axis=1)
        for part in (np.hstack((known, 0 * unknown)), np.hstack((0 * known, unknown)))
    )
    false, true = here / here[:, -1:], there / there[:, -1:]
    precision = there[:, 1:] / np.maximum(here[:, 1:] + there[:, 1:], 1)
    at = np.argmax(true >= 0.95, axis=1)
    return (
        (np.diff(here, axis=1) * (there[:, 1:] + there[:, :-1])).sum(1) / (2 * here[:, -1] * there[:, -1]),
        (np.diff(true, axis=1) * precision).sum(1),
        np.take_along_axis(false, at[:, None], axis=1)[:, 0],
    )


def roc(known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"]) -> Roc:
    """The receiver operating characteristic: both shares at every cut that changes one of them.

    >>> import torch
    >>> roc(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 3.0])).true.tolist()
    [0.0, 0.5, 0.5, 1.0, 1.0]
    """
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(*_told(known, unknown), drop_intermediate=False)
    return Roc(torch.from_numpy(false), torch.from_numpy(true))


def _told(known: Tensor, unknown: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Which of all images are unknown, and their scores."""
    parts = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    if not all(len(part) for part in parts):
        raise ConfigurationError("both known and unknown images are needed to judge how they are told apart")
    values = np.concatenate(parts)
    if not np.isfinite(values).all():
        raise ConfigurationError("a score is NaN or infinite")
    truth = np.repeat((0, 1), [len(part) for part in parts])
    return truth, values
