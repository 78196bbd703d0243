"""Checks and layouts of the arrays that metrics of maps are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Maps = Float[Tensor, "*images height width"]
    Segmentations = Bool[Tensor, "*images height width"]
    Scores = Float[Tensor, "*images"]

TINY = 1e-300
"""The least divisor of a map's values: a map of zeros stays a map of zeros, without a division by zero."""


def flatten_maps(maps: Maps) -> Float[Tensor, "*images pixels"]:
    """Return each map as a row of pixels, in float64 on the CPU; raise an error if a value is NaN or infinite."""
    if not isinstance(maps, Tensor) or maps.ndim < 2 or not maps.shape[-1] * maps.shape[-2]:
        shape = list(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise ConfigurationError(f"maps are a tensor [..., height, width], not {shape}")
    if not maps.isfinite().all():
        raise ConfigurationError("a map has NaN or infinite values and cannot be judged")
    return maps.detach().cpu().double().flatten(-2)


def flatten_weights(maps: Maps) -> Float[Tensor, "*images pixels"]:
    """Return the magnitudes of each map as a row of pixels, divided by the largest of them so that no sum overflows."""
    magnitudes = flatten_maps(maps).abs()
    return magnitudes / magnitudes.amax(-1, keepdim=True).clamp_min(TINY)


def flatten_with_segmentations(
    maps: Maps, segmentations: Segmentations
) -> tuple[Float[Tensor, "*images pixels"], Bool[Tensor, "*images pixels"]]:
    """Return each map and each segmentation as a row of pixels; raise an error if their shapes differ."""
    if not isinstance(segmentations, Tensor) or segmentations.dtype != torch.bool or segmentations.shape != maps.shape:
        given = type(segmentations).__name__
        if isinstance(segmentations, Tensor):
            given = f"{segmentations.dtype} {list(segmentations.shape)}"
        raise ConfigurationError(f"segmentations must be bool {list(maps.shape)} as the maps are, not {given}")
    return flatten_maps(maps), segmentations.cpu().flatten(-2)


def sort_rows(values: Float[Tensor, "*images pixels"]) -> Float[Tensor, "*images pixels"]:
    """Return each row in ascending order."""
    return torch.from_numpy(np.sort(values.numpy(), -1))  # numpy sorts many times faster than torch on a CPU


def segmentation_of_boxes(
    boxes: list[tuple[float, float, float, float]], height: int, width: int
) -> Bool[Tensor, "height width"]:
    """Return the segmentation that is true inside any of the boxes (left, top, right, bottom), given in pixels.

    >>> segmentation_of_boxes([(1.0, 0.0, 3.0, 1.0)], height=2, width=4).int().tolist()
    [[0, 1, 1, 0], [0, 0, 0, 0]]
    """
    segmentation = torch.zeros(height, width, dtype=torch.bool)
    for left, top, right, bottom in boxes:
        segmentation[max(0, round(top)) : max(0, round(bottom)), max(0, round(left)) : max(0, round(right))] = True
    return segmentation
