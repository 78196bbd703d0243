"""Structural similarity of two maps (Wang et al. 2004), each scaled to run from 0 to 1.

    (2 μ_a μ_b + C₁)(2 σ_ab + C₂) / ((μ_a² + μ_b² + C₁)(σ_a² + σ_b² + C₂))            C₁ = 0.01², C₂ = 0.03²

with means, variances and the covariance under a Gaussian window of 11×11 pixels, σ = 1.5, and the mean taken over all
places where the window fits. Undefined, NaN, where a map is constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics.metric import flat

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.metrics.metric import Maps, Scores

WINDOW, DEVIATION = 11, 1.5
C1, C2 = 0.01**2, 0.03**2


def ssim(maps: Maps, others: Maps) -> Scores:
    """How far two maps have the same structure, place by place: 1 where they are the same.

    >>> import torch
    >>> ramp = torch.arange(144.0).view(12, 12)
    >>> ssim(ramp, 2 * ramp + 5).item(), round(ssim(ramp, -ramp).item(), 4)
    (1.0, -0.9317)
    """
    if maps.shape != others.shape or min(maps.shape[-2:], default=0) < WINDOW:
        shapes = f"{list(maps.shape)} and {list(others.shape)}"
        raise ConfigurationError(f"ssim compares maps of the same size, {WINDOW}×{WINDOW} or more, not {shapes}")
    a, b = (_scaled(flat(some)).view(-1, 1, *maps.shape[-2:]) for some in (maps, others))
    mean_a, mean_b, aa, bb, ab = (_windowed(some) for some in (a, b, a * a, b * b, a * b))
    spread_a, spread_b, both = aa - mean_a**2, bb - mean_b**2, ab - mean_a * mean_b
    light = (2 * mean_a * mean_b + C1) / (mean_a**2 + mean_b**2 + C1)
    return (light * (2 * both + C2) / (spread_a + spread_b + C2)).mean((1, 2, 3)).view(maps.shape[:-2])


def _scaled(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """From 0 to 1; NaN where all are alike."""
    low, high = values.amin(-1, keepdim=True), values.amax(-1, keepdim=True)
    return torch.where(high > low, (values - low) / (high - low), torch.nan)


def _windowed(images: Float[Tensor, "images 1 height width"]) -> Float[Tensor, "images 1 rows columns"]:
    """Means under the window."""
    away = torch.arange(WINDOW, dtype=torch.float64) - WINDOW // 2
    weights = torch.softmax(-(away**2) / (2 * DEVIATION**2), 0)
    return F.conv2d(F.conv2d(images, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
