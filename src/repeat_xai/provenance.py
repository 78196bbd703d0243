"""What made a result: enough to make it again."""

from __future__ import annotations

import dataclasses
import platform
import time
from numbers import Integral, Real
from typing import Any

import numpy
import PIL
import timm
import torch
import torchvision

from repeat_xai.calls import Meter
from repeat_xai.types import Encoder, Image
from repeat_xai.version import __version__

VERSIONS = {module.__name__: str(module.__version__) for module in (torch, torchvision, timm, numpy, PIL)}


def request(method: object, encoder: Encoder, image: Image, *, seed: int) -> dict[str, Any]:
    """Everything the maps depend on."""
    preprocessing = image.preprocessing
    return {
        "method": configuration(method),
        "encoder": {
            "name": encoder.name,
            "weights": encoder.weights,
            "pool": encoder.pool,
            "dtype": str(encoder.dtype).removeprefix("torch."),
        },
        "image": {
            "sha256": image.photo.digest,
            "preprocessing": "none" if preprocessing is None else dataclasses.asdict(preprocessing),
        },
        "seed": int(seed),
        "repeat-xai": __version__,
    }


def record(method: object, encoder: Encoder, image: Image, *, seed: int, meter: Meter) -> dict[str, Any]:
    """The request, what it was made of and with, and what it cost where."""
    device = torch.cuda.get_device_name(encoder.device) if encoder.device.type == "cuda" else platform.machine()
    return request(method, encoder, image, seed=seed) | {
        "photo": {
            "name": image.photo.name,
            "size": list(image.photo.size),
            "box": list(image.photo.box),
            "input_size": list(image.pixels.shape[1:]),
        },
        "encoder_calls": meter.calls,
        "seconds": round(meter.seconds, 3),
        "device": f"{encoder.device} ({device})",
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"python": platform.python_version()} | VERSIONS,
    }


def configuration(thing: object) -> Any:
    """A configuration object as plain JSON: its name with the fields that make it what it is."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {f.name: configuration(getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.compare}
        return {"name": type(thing).__name__} | fields
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, Real):
        return int(thing) if isinstance(thing, Integral) else float(thing)
    return getattr(thing, "__qualname__", type(thing).__qualname__)
