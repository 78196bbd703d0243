"""Any other attribution of the label-free scalar, of Captum's or one's own, in a line.

Attribution(name="DeepLift", function=lambda g, x: captum.attr.DeepLift(g).attribute(x))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.methods.bases.label_free import Alignment, Reference, attribute
from repeat_xai.methods.bases.options import settle
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class Attribution:
    """What a function of (g, x) attributes to each value of x, which is [1, channels, height, width]."""

    name: str
    """What it is called in the record: it stands for the function there."""
    function: Callable[[Alignment, Tensor], Tensor] = field(compare=False)
    stochastic: bool = False
    """Whether it draws random numbers, from torch's or numpy's global generators: those are seeded for it."""
    gradients: bool = True
    """Whether it needs gradients; without, any encoder will do."""
    channels: str = "sum_abs"
    reference: Reference | None = None

    def __post_init__(self) -> None:
        settle(self)
        if isinstance(self.function, type) or not callable(self.function):
            raise ConfigurationError(f"function must take (g, x) and give attributions, not be {self.function!r}")

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        return attribute(self, encoder, image, self.function, seed=seed)
