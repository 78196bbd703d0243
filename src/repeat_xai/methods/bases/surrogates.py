"""Regression of the label-free scalar on parts of the image, which Kernel SHAP and LIME share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch import Tensor

from repeat_xai.methods.bases.base_options import FILLS
from repeat_xai.methods.bases.features import Features, parts_of
from repeat_xai.methods.bases.label_free import Alignment, LabelFree, attribute, copies_per_batch
from repeat_xai.types import Encoder, Image, expect

if TYPE_CHECKING:
    from repeat_xai.types import Map


@runtime_checkable
class ByParts(LabelFree, Protocol):
    """A method that hides parts of the image."""

    @property
    def samples(self) -> int: ...
    @property
    def features(self) -> Features | Tensor: ...
    @property
    def fill(self) -> str: ...


def attribute_parts(
    method: ByParts, encoder: Encoder, image: Image, surrogate: Callable[[Alignment], Any], *, seed: int
) -> Map:
    """Return a map in which every pixel has the attribution of its part."""
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
                baselines=FILLS[method.fill](x, encoder),
                feature_mask=parts.to(x.device),
                n_samples=method.samples,
                perturbations_per_eval=copies_per_batch(encoder),
                return_input_shape=False,
            )[0]
            .cpu()[parts]
        ),
        seed=seed,
    )
