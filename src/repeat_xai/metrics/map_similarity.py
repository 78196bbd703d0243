"""Two measures of how alike two maps are: Spearman's rank correlation and structural similarity.

Spearman's rank correlation is Pearson's correlation of the pixels' ranks r and t; pixels that tie share their rank:

    ρ = Σ (r − r̄)(t − r̄) / √(Σ (r − r̄)² Σ (t − r̄)²)            r̄ = (n + 1) / 2

Structural similarity (Wang et al. 2004) compares two maps a and b, each scaled to run from 0 to 1:

    (2 μ_a μ_b + C₁)(2 σ_ab + C₂) / ((μ_a² + μ_b² + C₁)(σ_a² + σ_b² + C₂))            C₁ = 0.01², C₂ = 0.03²

with means, variances and the covariance under a Gaussian window of 11×11 pixels, σ = 1.5, averaged over all places
where the window fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics.map_arrays import flatten_maps, sort_rows

if TYPE_CHECKING:
    from jaxtyping import Float

    from repeat_xai.metrics.map_arrays import Maps, Scores

WINDOW, DEVIATION = 11, 1.5
"""Side of the Gaussian window in pixels, and its standard deviation."""
C1, C2 = 0.01**2, 0.03**2


def spearman(maps: Maps, others: Maps) -> Scores:
    """Return how similarly two maps rank their pixels, by Spearman's rank correlation.

    Range: −1, the reverse order, to 1, the same order. NaN where a map is constant, which has no order.

    >>> import torch
    >>> spearman(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[1.0, 3.0, 2.0, 9.0]])).item()
    0.8
    """
    if maps.shape != others.shape:
        raise ConfigurationError(f"maps of {list(maps.shape)} cannot be compared with maps of {list(others.shape)}")
    r, t = (_doubled_ranks(flatten_maps(values)) for values in (maps, others))
    sizes = r.square().sum(-1) * t.square().sum(-1)
    return torch.where(sizes > 0, (r * t).sum(-1) / sizes.sqrt(), torch.nan)


def _doubled_ranks(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """Return twice the ranks less twice their mean: whole numbers even where pixels tie, so that sums are exact."""
    rows = sort_rows(values).contiguous()
    below, up_to = (torch.searchsorted(rows, values.contiguous(), right=right) for right in (False, True))
    return (below + up_to - values.shape[-1]).double()


def ssim(maps: Maps, others: Maps) -> Scores:
    """Return how similar two maps are in structure, place by place, by the structural similarity index.

    Each map is first scaled to run from 0 to 1. Range: −1 to 1, which identical maps have. NaN where a map is constant.

    >>> import torch
    >>> ramp = torch.arange(144.0).view(12, 12)
    >>> ssim(ramp, 2 * ramp + 5).item(), round(ssim(ramp, -ramp).item(), 4)
    (1.0, -0.9317)
    """
    if maps.shape != others.shape or min(maps.shape[-2:], default=0) < WINDOW:
        shapes = f"{list(maps.shape)} and {list(others.shape)}"
        raise ConfigurationError(f"ssim compares maps of the same size, {WINDOW}×{WINDOW} or more, not {shapes}")
    a, b = (_scaled_to_unit(flatten_maps(values)).view(-1, 1, *maps.shape[-2:]) for values in (maps, others))
    mean_a, mean_b, mean_aa, mean_bb, mean_ab = (_windowed_means(values) for values in (a, b, a * a, b * b, a * b))
    variance_a, variance_b, covariance = mean_aa - mean_a**2, mean_bb - mean_b**2, mean_ab - mean_a * mean_b
    luminance = (2 * mean_a * mean_b + C1) / (mean_a**2 + mean_b**2 + C1)
    similarity = luminance * (2 * covariance + C2) / (variance_a + variance_b + C2)
    return similarity.mean((1, 2, 3)).view(maps.shape[:-2])


def _scaled_to_unit(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """Return each row scaled to run from 0 to 1; NaN where all its values are equal."""
    low, high = values.amin(-1, keepdim=True), values.amax(-1, keepdim=True)
    return torch.where(high > low, (values - low) / (high - low), torch.nan)


def _windowed_means(images: Float[Tensor, "images 1 height width"]) -> Float[Tensor, "images 1 rows columns"]:
    """Return the weighted mean under the Gaussian window at every place where it fits."""
    offsets = torch.arange(WINDOW, dtype=torch.float64) - WINDOW // 2
    weights = torch.softmax(-(offsets**2) / (2 * DEVIATION**2), 0)
    return F.conv2d(F.conv2d(images, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
