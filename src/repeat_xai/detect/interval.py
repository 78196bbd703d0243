"""How far chance goes: the interval of a quality over images drawn again, with replacement, from both kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from repeat_xai.detect.quality import Quality, qualities
from repeat_xai.errors import choose
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

RESAMPLES = 1000


def bootstrapped(
    known: Float[Tensor, " known"], unknown: Float[Tensor, " unknown"], judge: str, *, level: float = 0.95, seed: int
) -> tuple[float, float]:
    """The interval of `auroc`, `aupr` or `fpr95`."""
    choose("judge", judge, Quality._fields)
    parts = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    counts = [_counts(len(part), fold(seed, "bootstrap", kind, len(part))) for kind, part in enumerate(parts)]
    found = qualities(np.concatenate(parts), *counts)[Quality._fields.index(judge)]
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counts(images: int, seed: int) -> np.ndarray:
    """How often each image is drawn, in each resample."""
    drawn = (uniforms(seed, start=0, stop=RESAMPLES, width=images) * images).astype(int)
    rows = np.repeat(np.arange(RESAMPLES), images)
    counts = np.zeros((RESAMPLES, images))
    np.add.at(counts, (rows, drawn.ravel()), 1)
    return counts
