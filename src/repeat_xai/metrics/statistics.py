"""Statistics of the scores of many images: their mean with an interval, and whether one method is better than another.

Undefined scores (NaN) are counted and left out. Intervals are percentile bootstraps over images. Methods are compared
on the same images by Wilcoxon's signed-rank test, with Holm's correction for the number of methods.
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
VALUES_PER_BATCH = 2**22
"""Values, images × resamples, that a batch of resamples may hold: 32 MB in float64."""


class Summary(NamedTuple):
    """Statistics of the scores that are defined; None where there are too few of them."""

    mean: float | None
    deviation: float | None
    low: float | None
    """Lower end of the interval for the mean."""
    high: float | None
    """Upper end of the interval for the mean."""
    images: int
    """Number of images with a defined score."""
    undefined: int
    """Number of images whose score is NaN."""


class Comparison(NamedTuple):
    """A method compared with the baseline, on the images where the scores of both are defined."""

    difference: float | None
    """Mean of the paired differences."""
    p: float | None
    """The p-value of the two-sided test."""
    corrected: float | None
    """The p-value corrected for the number of methods compared."""
    images: int


def summary(
    scores: Float[Tensor, " images"], *, seed: int = 0, level: float = 0.95, resamples: int = RESAMPLES
) -> Summary:
    """Return the mean of the scores, their standard deviation, and a bootstrap interval for the mean.

    >>> import torch
    >>> summary(torch.tensor([1.0, 3.0, float("nan")]))._asdict()
    {'mean': 2.0, 'deviation': 1.4142135623730951, 'low': 1.0, 'high': 3.0, 'images': 2, 'undefined': 1}
    """
    at_least("resamples", resamples, 1)
    if not 0 < level < 1:
        raise ConfigurationError(f"level must lie between 0 and 1, not be {level}")
    values = _values(scores)
    defined = values[~np.isnan(values)]
    images, undefined = len(defined), len(values) - len(defined)
    if images < 2:
        mean = float(defined[0]) if images else None
        return Summary(mean, None, None, None, images, undefined)
    # The word and the number of images are part of the random seed: other parts would give another interval.
    stream = fold(seed, "bootstrap", images)
    means = np.concatenate(
        [
            defined[(uniforms(stream, start=start, stop=stop, width=images) * images).astype(int)].mean(1)
            for start, stop in resample_ranges(resamples, images)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Summary(float(defined.mean()), float(defined.std(ddof=1)), float(low), float(high), images, undefined)


def resample_ranges(resamples: int, images: int) -> Iterator[tuple[int, int]]:
    """Yield the first resample of each batch and the one after its last, so that a batch of them fits into memory.

    >>> list(resample_ranges(3, VALUES_PER_BATCH // 2))
    [(0, 2), (2, 3)]
    """
    step = max(1, VALUES_PER_BATCH // images)
    return ((start, min(start + step, resamples)) for start in range(0, resamples, step))


def compare_with_baseline(scores: Mapping[str, Float[Tensor, " images"]], *, baseline: str) -> dict[str, Comparison]:
    """Return the comparison of every other method with the baseline, image by image.

    The p-value of a method that differs from the baseline on no image is 1.

    >>> import torch
    >>> scores = {"relax": torch.tensor([1.0, 2.0, 3.0]), "repeat": torch.tensor([1.5, 3.0, 4.5])}
    >>> compare_with_baseline(scores, baseline="relax")
    {'repeat': Comparison(difference=1.0, p=0.25, corrected=0.25, images=3)}
    """
    from scipy.stats import wilcoxon

    choose("baseline", baseline, scores)
    rows = {name: _values(values) for name, values in scores.items()}
    if len({len(row) for row in rows.values()}) > 1:
        raise ConfigurationError("methods can be compared on the same images only: give as many scores for each")
    comparisons: dict[str, Comparison] = {}
    for name, row in rows.items():
        if name != baseline:
            differences = row - rows[baseline]
            differences = differences[~np.isnan(differences)]
            images = len(differences)
            p = float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0
            comparisons[name] = Comparison(
                float(differences.mean()) if images else None, p if images > 1 else None, None, images
            )
    return _with_holm_correction(comparisons)


def _with_holm_correction(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """Multiply the m-th smallest of n p-values by n − m + 1, and let none fall below a smaller one's."""
    corrected = dict(comparisons)
    tested = sorted((comparison.p, name) for name, comparison in comparisons.items() if comparison.p is not None)
    largest = 0.0
    for rank, (p, name) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        corrected[name] = comparisons[name]._replace(corrected=largest)
    return corrected


def _values(scores: Tensor) -> np.ndarray:
    """Return the scores in float64; raise an error unless they are one number an image, finite or NaN."""
    if not isinstance(scores, Tensor) or scores.ndim != 1:
        raise ConfigurationError("scores are a tensor of one number for each image")
    values = scores.detach().double().cpu().numpy()
    if np.isinf(values).any():
        raise ConfigurationError("a score is infinite")
    return values
