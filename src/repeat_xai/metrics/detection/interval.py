"""How far chance goes: the interval of a quality over images drawn again, with replacement, from both kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from repeat_xai.errors import choose
from repeat_xai.metrics.detection.quality import Quality, qualities
from repeat_xai.metrics.statistics import slices
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
    at = Quality._fields.index(judge)
    parts = [scores.detach().double().cpu().numpy() for scores in (known, unknown)]
    values = np.concatenate(parts)
    streams = [fold(seed, "bootstrap", kind, len(part)) for kind, part in enumerate(parts)]
    found = np.concatenate(
        [
            qualities(values, *(_counts(len(part), stream, some) for part, stream in zip(parts, streams, strict=True)))[
                at
            ]
            for some in slices(RESAMPLES, len(values))
        ]
    )
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counts(images: int, stream: int, some: tuple[int, int]) -> np.ndarray:
    """How often each image is drawn, in each of these resamples."""
    start, stop = some
    drawn = (uniforms(stream, start=start, stop=stop, width=images) * images).astype(int)
    counts = np.zeros((stop - start, images))
    np.add.at(counts, (np.repeat(np.arange(stop - start), images), drawn.ravel()), 1)
    return counts
