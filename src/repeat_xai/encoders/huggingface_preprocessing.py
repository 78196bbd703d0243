"""The preprocessing that an image processor of transformers stands for, read from its fields and tried on a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import PIL.Image
import torch

from repeat_xai.encoders.torch_encoder import sized
from repeat_xai.errors import EncoderError, reason
from repeat_xai.types import Preprocessing

RESAMPLING = ("nearest", "lanczos", "bilinear", "bicubic")
"""Names of Pillow's filters, in the order of Pillow's numbers for them."""
MAX_DIFFERENCE = 0.02
"""How far our pixels may be from the image processor's, from black to white being 1; crops may be off by a pixel."""


def open_processor(source: dict[str, Any]) -> Any:
    """Return the image processor that transformers finds by these arguments, or raise transformers' own error."""
    import transformers

    return transformers.AutoImageProcessor.from_pretrained(**source)


def as_preprocessing(label: str, processor: Any, size: int | None) -> Preprocessing:
    """Return what an image processor does to a photo, at another size if given.

    An EncoderError is raised if it does anything else as well. `label` names the model in that error.
    """
    try:
        preprocessing = _read_fields(processor)
        y, x = np.mgrid[0:1:300j, 0:1:400j]
        picture = (np.stack((x, y, (x + 2 * y) / 3), -1) * 255).round().astype(np.uint8)
        ours = preprocessing(PIL.Image.fromarray(picture))
        theirs = torch.as_tensor(processor(images=picture, return_tensors="pt")["pixel_values"][0])
        if ours.shape != theirs.shape or _difference(ours, theirs, preprocessing) > MAX_DIFFERENCE:
            raise ValueError("it does more than to resize, crop and normalise")
    except Exception as error:  # any processor may fail in any way
        raise EncoderError(
            f"{label}: what its {type(processor).__name__} does is not known here ({reason(error)}); "
            "in Python, give a preprocessing"
        ) from error
    return _resized(preprocessing, size) if size else preprocessing


def _difference(ours: torch.Tensor, theirs: torch.Tensor, preprocessing: Preprocessing) -> float:
    """Return the largest difference between pixels before normalisation."""
    largest = (ours - theirs).abs().amax((1, 2)) * torch.tensor(preprocessing.std)
    return float(largest.max())


def _read_fields(processor: Any) -> Preprocessing:
    """Return the preprocessing that the image processor's fields describe."""
    does = {k: getattr(processor, f"do_{k}", False) for k in ("resize", "center_crop", "rescale", "normalize")}
    size, crop = (dict(getattr(processor, field, None) or {}) for field in ("size", "crop_size"))
    resize: int | tuple[int, int] = size.get("shortest_edge") or (size.get("height", 0), size.get("width", 0))
    cropped = (crop["height"], crop["width"]) if does["center_crop"] else resize
    if isinstance(resize, int) and not crop and (share := getattr(processor, "crop_pct", None)):  # ConvNeXt
        cropped, resize = (resize, resize), int(resize / share) if resize < 384 else (resize, resize)
    if not does["resize"] or isinstance(cropped, int) or not min(cropped) or size.get("longest_edge"):
        raise ValueError("its images are not all of one size")
    scale = 255 * (processor.rescale_factor if does["rescale"] else 1)  # (v·scale − m)/s = (v − m/scale)/(s/scale)
    mean, std = (processor.image_mean, processor.image_std) if does["normalize"] else ((0.0,) * 3, (1.0,) * 3)
    return Preprocessing(
        size=cropped,
        resize=resize,
        interpolation=RESAMPLING[int(processor.resample)],  # type: ignore[arg-type]
        mean=tuple(m / scale for m in mean),
        std=tuple(s / scale for s in std),
    )


def _resized(preprocessing: Preprocessing, size: int) -> Preprocessing:
    """Return the preprocessing for a square input of another size, with the same share of the picture cropped away."""
    if isinstance(preprocessing.resize, int):
        return sized(preprocessing, size)
    (rows, columns), (height, width) = preprocessing.resize, preprocessing.size
    return replace(
        preprocessing, size=(size, size), resize=(round(rows * size / height), round(columns * size / width))
    )
