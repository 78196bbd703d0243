"""A model's own image processor, as transformers has it → preprocessing."""

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
"""By Pillow's numbers."""
AGREES = 0.02
"""How far our pixels may be from the image processor's, black to white being 1; a crop may be off by one of them."""


def preprocessing(name: str, where: dict[str, Any]) -> Preprocessing:
    """What the model's own image processor does to a photo; refused if it does anything else as well."""
    import transformers

    try:
        own = transformers.AutoImageProcessor.from_pretrained(**where)
    except Exception as error:  # transformers meets what it cannot read with errors of every kind
        raise EncoderError(
            f"hf:{name}: has no image processor that can be read, so its preprocessing is unknown ({reason(error)}); "
            "save one beside the model, or in Python give the model as a module"
        ) from error
    try:
        how = _read(own)
        y, x = np.mgrid[0:1:300j, 0:1:400j]
        picture = (np.stack((x, y, (x + 2 * y) / 3), -1) * 255).round().astype(np.uint8)
        ours = how(PIL.Image.fromarray(picture))
        theirs = torch.as_tensor(own(images=picture, return_tensors="pt")["pixel_values"][0])
        if ours.shape != theirs.shape or ((ours - theirs).abs().amax((1, 2)) * torch.tensor(how.std)).max() > AGREES:
            raise ValueError("it does more than to resize, crop and normalise")
    except Exception as error:  # any processor may fail in any way
        raise EncoderError(
            f"hf:{name}: what its {type(own).__name__} does is not known here ({reason(error)}); "
            "in Python, give the model as a module with a Preprocessing"
        ) from error
    return how


def _read(processor: Any) -> Preprocessing:
    """What the image processor's fields say."""
    does = {k: getattr(processor, f"do_{k}", False) for k in ("resize", "center_crop", "rescale", "normalize")}
    size, crop = (dict(getattr(processor, field, None) or {}) for field in ("size", "crop_size"))
    resize: int | tuple[int, int] = size.get("shortest_edge") or (size.get("height", 0), size.get("width", 0))
    seen = (crop["height"], crop["width"]) if does["center_crop"] else resize
    if isinstance(resize, int) and not crop and (share := getattr(processor, "crop_pct", None)):  # ConvNeXt
        seen, resize = (resize, resize), int(resize / share) if resize < 384 else (resize, resize)
    if not does["resize"] or isinstance(seen, int) or not min(seen) or size.get("longest_edge"):
        raise ValueError("its images are not all of one size")
    scale = 255 * (processor.rescale_factor if does["rescale"] else 1)  # (v·scale − m)/s = (v − m/scale)/(s/scale)
    mean, std = (processor.image_mean, processor.image_std) if does["normalize"] else ((0.0,) * 3, (1.0,) * 3)
    return Preprocessing(
        size=seen,
        resize=resize,
        interpolation=RESAMPLING[int(processor.resample)],  # type: ignore[arg-type]
        mean=tuple(m / scale for m in mean),
        std=tuple(s / scale for s in std),
    )


def resized(how: Preprocessing, size: int) -> Preprocessing:
    """The same preprocessing for a square input of another size, with the same share of the picture cropped away."""
    if isinstance(how.resize, int):
        return sized(how, size)
    (rows, columns), (height, width) = how.resize, how.size
    return replace(how, size=(size, size), resize=(round(rows * size / height), round(columns * size / width)))
