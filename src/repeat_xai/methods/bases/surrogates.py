"""What a regression on parts of the image gives each of them: the work that Kernel SHAP and LIME share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch import Tensor

from repeat_xai.methods.bases.baselines import BASELINES
from repeat_xai.methods.bases.features import Features, parts_of
from repeat_xai.methods.bases.label_free import Alignment, LabelFree, at_once, attribute
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from repeat_xai.types import Map


@runtime_checkable
class ByParts(LabelFree, Protocol):
    """A method that takes parts of the image away."""

    @property
    def samples(self) -> int: ...
    @property
    def features(self) -> Features | Tensor: ...
    @property
    def baseline(self) -> str: ...


def attribute_parts(
    method: ByParts, encoder: Encoder, image: Image, surrogate: Callable[[Alignment], Any], *, seed: int
) -> Map:
    """Every pixel as its part."""
    expect(encoder, image)
    parts = parts_of(method.features, image)
    return attribute(
        method,
        encoder,
        image,
        lambda g, x: (
            surrogate(g)
            .attribute(
                x,
                baselines=BASELINES[method.baseline](x, encoder),
                feature_mask=parts.to(x.device),
                n_samples=method.samples,
                perturbations_per_eval=at_once(encoder),
                return_input_shape=False,
            )[0]
            .cpu()[parts]
        ),
        seed=seed,
    )
