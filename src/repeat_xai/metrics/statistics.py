"""Scores of many images → what can be said of them: mean, deviation, interval, and whether one method is better.

What is undefined (NaN) is counted and left out. Intervals are percentile bootstraps over images; methods are compared
on the same images by Wilcoxon's signed-rank test, with Holm's correction for their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.seeds import fold, uniforms

if TYPE_CHECKING:
    from jaxtyping import Float

RESAMPLES = 10_000
AT_ONCE = 2**22
"""Images in all the resamples that are drawn together."""


class Summary(NamedTuple):
    """Of the scores that are defined; None where there are too few to say."""

    mean: float | None
    deviation: float | None
    low: float | None
    high: float | None
    """Ends of the interval for the mean."""
    images: int
    undefined: int


class Comparison(NamedTuple):
    """One method against the baseline, on the images where both are defined."""

    difference: float | None
    """Mean of the paired differences."""
    p: float | None
    """Of the two-sided test."""
    corrected: float | None
    """For the number of methods compared."""
    images: int


def summary(
    scores: Float[Tensor, " images"], *, seed: int = 0, level: float = 0.95, resamples: int = RESAMPLES
) -> Summary:
    """Mean with its interval.

    >>> import torch
    >>> summary(torch.tensor([1.0, 3.0, float("nan")]))._asdict()
    {'mean': 2.0, 'deviation': 1.4142135623730951, 'low': 1.0, 'high': 3.0, 'images': 2, 'undefined': 1}
    """
    at_least("resamples", resamples, 1)
    if not 0 < level < 1:
        raise ConfigurationError(f"level must lie between 0 and 1, not be {level}")
    values = _values(scores)
    known = values[~np.isnan(values)]
    undefined = len(values) - len(known)
    if len(known) < 2:
        mean = float(known[0]) if len(known) else None
        return Summary(mean, None, None, None, len(known), undefined)
    many, stream = len(known), fold(seed, "bootstrap", len(known))
    means = np.concatenate(
        [
            known[(uniforms(stream, start=a, stop=b, width=many) * many).astype(int)].mean(1)
            for a, b in slices(resamples, many)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Summary(float(known.mean()), float(known.std(ddof=1)), float(low), float(high), len(known), undefined)


def slices(resamples: int, images: int) -> Iterator[tuple[int, int]]:
    """From which resample to which, so few at a time that their images fit into memory.

    >>> list(slices(3, AT_ONCE // 2))
    [(0, 2), (2, 3)]
    """
    step = max(1, AT_ONCE // images)
    return ((start, min(start + step, resamples)) for start in range(0, resamples, step))


def compared(scores: Mapping[str, Float[Tensor, " images"]], *, baseline: str) -> dict[str, Comparison]:
    """Every other method against the baseline."""
    from scipy.stats import wilcoxon

    choose("baseline", baseline, scores)
    rows = {name: _values(values) for name, values in scores.items()}
    if len({len(row) for row in rows.values()}) > 1:
        raise ConfigurationError("methods can be compared on the same images only: give as many scores for each")
    found: dict[str, Comparison] = {}
    for name, row in rows.items():
        if name != baseline:
            away = row - rows[baseline]
            away = away[~np.isnan(away)]
            p = float(wilcoxon(away).pvalue) if np.any(away) else 1.0
            found[name] = Comparison(
                float(away.mean()) if len(away) else None, p if len(away) > 1 else None, None, len(away)
            )
    tested = sorted((one.p, name) for name, one in found.items() if one.p is not None)
    worst = 0.0
    for rank, (p, name) in enumerate(tested):
        worst = max(worst, min(1.0, (len(tested) - rank) * p))
        found[name] = found[name]._replace(corrected=worst)
    return found


def _values(scores: Tensor) -> np.ndarray:
    if not isinstance(scores, Tensor) or scores.ndim != 1:
        raise ConfigurationError("scores are a tensor of one number an image")
    values = scores.detach().double().cpu().numpy()
    if np.isinf(values).any():
        raise ConfigurationError("a score is infinite")
    return values
