"""Local Lipschitz estimate (Alvarez-Melis and Jaakkola 2018): max over δ of ‖e(x) − e(x + δ)‖₂ / ‖δ‖₂, δ ~ N(0, 0.1²).

Maps are divided by their largest value. Lower is more robust.
"""

from __future__ import annotations

from repeat_xai.metrics.emprt import Of
from repeat_xai.metrics.shaken import MethodOf, Numbers, shaken
from repeat_xai.types import Encoder, Image


def local_lipschitz(
    method: MethodOf,
    encoder: Encoder,
    image: Image,
    *,
    of: Of = "importance",
    deviation: float = 0.1,
    draws: int = 200,
    numbers: Numbers = "fresh",
    seed: int,
) -> float:
    """How much the map may change for so much change of the image: the paper's R."""
    first, *others = shaken(
        method, encoder, image, noise="normal", size=deviation, of=of, draws=draws, numbers=numbers, seed=seed
    )
    return max(float((first.map - other.map).norm() / other.disturbance.norm()) for other in others)
