"""The colours and the limits with which maps are drawn, the same in figures and on pages."""

from __future__ import annotations

from matplotlib.colors import ListedColormap
from torch import Tensor

from repeat_xai.types import Explanation

IMPORTANCE, UNCERTAINTY = "viridis", "magma"
"""Colour maps of importance that is never below zero, and of uncertainty."""
SIGNED = "PuOr_r"
"""Colour map of importance that may be below zero; its two hues meet at zero."""
VERDICT_COLOURS = ListedColormap(["#0072B2", "#F0F0F0", "#D55E00"])
"""Certainly unimportant, undecided, certainly important."""
VOTE_SHARE_LIMITS, VOTE_VARIANCE_LIMITS = (0.0, 1.0), (0.0, 0.25)
"""Limits of a share of votes p, and of its variance p(1 − p), which is largest at p = 0.5."""


def importance_scale(explanation: Explanation) -> tuple[str, tuple[float, float]]:
    """Return the colour map and the limits for importance: 0 to 1 for votes, otherwise the map's own range."""
    importance = explanation.importance
    if explanation.vote_share is not None:
        return IMPORTANCE, VOTE_SHARE_LIMITS
    if importance.min() >= 0:
        return IMPORTANCE, robust_limits(importance)
    largest = robust_limits(importance.abs())[1]
    return SIGNED, (-largest, largest)


def known_uncertainty(explanation: Explanation) -> Tensor | None:
    """Return the uncertainty map, or None if the method does not say how sure it is."""
    values: Tensor | None = explanation.uncertainty
    return None if values is None or bool(values.isnan().all()) else values


def uncertainty_limits(explanation: Explanation) -> tuple[float, float]:
    """Return the limits for uncertainty: 0 to 0.25 for votes, otherwise the map's own range, 0 to 1 without a map."""
    if explanation.vote_share is not None:
        return VOTE_VARIANCE_LIMITS
    values = known_uncertainty(explanation)
    return VOTE_SHARE_LIMITS if values is None else robust_limits(values)


def robust_limits(values: Tensor) -> tuple[float, float]:
    """Return the minimum and the 99.5th percentile, so that a few extreme pixels do not stretch the scale."""
    return values.min().item(), values.flatten().double().quantile(0.995).item()
