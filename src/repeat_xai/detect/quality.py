"""How well a score tells unknown images from known ones, where it is known which are which."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
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


def quality(known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"]) -> Quality:
    """Of the scores of known and of unknown images.

    >>> import torch
    >>> quality(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0]))
    Quality(auroc=1.0, aupr=1.0, fpr95=0.0)
    """
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    parts = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    if not all(len(part) for part in parts):
        raise ConfigurationError("both known and unknown images are needed to judge how they are told apart")
    values = np.concatenate(parts)
    if not np.isfinite(values).all():
        raise ConfigurationError("a score is NaN or infinite")
    truth = np.repeat((0, 1), [len(part) for part in parts])
    false, true, _ = roc_curve(truth, values, drop_intermediate=False)
    return Quality(
        float(roc_auc_score(truth, values)),
        float(average_precision_score(truth, values)),
        float(false[np.argmax(true >= 0.95)]),
    )
