"""Max-sensitivity (Yeh et al. 2019): max over δ of ‖e(x) − e(x + δ)‖₂ / ‖e(x)‖₂, δ ~ U(−0.2, 0.2).

Maps are divided by their largest value. Lower is more robust; NaN, undefined, where the map is zero.
"""

from __future__ import annotations

import math

from repeat_xai.metrics.emprt import Of
from repeat_xai.metrics.shaken import MethodOf, Numbers, shaken
from repeat_xai.types import Encoder, Image


def max_sensitivity(
    method: MethodOf,
    encoder: Encoder,
    image: Image,
    *,
    of: Of = "importance",
    radius: float = 0.2,
    draws: int = 200,
    numbers: Numbers = "fresh",
    seed: int,
) -> float:
    """How much the map may change, as a share of itself, anywhere near the image."""
    first, *others = shaken(
        method, encoder, image, noise="uniform", size=radius, of=of, draws=draws, numbers=numbers, seed=seed
    )
    size = float(first.map.norm())
    return max(float((first.map - other.map).norm()) for other in others) / size if size else math.nan
