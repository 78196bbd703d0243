"""Any other attribution of the label-free scalar g, from Captum or one's own, as a method.

Attribution(name="DeepLift", function=lambda g, x: captum.attr.DeepLift(g).attribute(x))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from torch import Tensor

from repeat_xai.engine.targets import Target
from repeat_xai.errors import ConfigurationError
from repeat_xai.methods.base import answers_of_base, explain_image, explain_images
from repeat_xai.methods.bases.base_options import check_options
from repeat_xai.methods.bases.label_free import Alignment, attribute
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map


@final
@dataclass(frozen=True, kw_only=True)
class Attribution:
    """A method made of a function that attributes the label-free scalar g to the values of an image x."""

    name: str
    """Name of the method; it stands for the function in the provenance."""
    function: Callable[[Alignment, Tensor], Tensor] = field(compare=False)
    """Takes g and x [1, channels, height, width], and returns one attribution for each value of x."""
    stochastic: bool = False
    """Whether it draws random numbers from torch's or numpy's global generators, which are seeded for it."""
    gradients: bool = True
    """Whether it needs gradients; if not, any encoder can be used."""
    channels: str = "sum_abs"
    target: Target | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if isinstance(self.function, type) or not callable(self.function):
            raise ConfigurationError(f"function must take (g, x) and give attributions, not be {self.function!r}")

    @property
    def calls(self) -> None:
        """None, because it is not known how often the function runs the encoder."""

    __call__ = explain_image
    stream = explain_images
    answers = answers_of_base

    def importance(self, encoder: Encoder, image: Image, *, seed: int) -> Map:
        """Return the attribution of each pixel."""
        return attribute(self, encoder, image, self.function, seed=seed)
