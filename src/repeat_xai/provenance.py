"""What made a result: enough to make it again."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import torch

from repeat_xai.calls import listening
from repeat_xai.types import Encoder, Image
from repeat_xai.version import __version__

PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow")


@dataclasses.dataclass
class Meter:
    """Encoder calls made and seconds spent so far."""

    started: float = dataclasses.field(default_factory=time.perf_counter)
    calls: int = 0

    def hear(self, calls: int) -> None:
        self.calls += calls

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


@contextmanager
def metering() -> Iterator[Meter]:
    """Count the encoder calls made inside the block."""
    meter = Meter()
    with listening(meter.hear):
        yield meter


def request(method: object, encoder: Encoder, image: Image, *, seed: int) -> dict[str, Any]:
    """Everything the result depends on."""
    return {
        "method": configuration(method),
        "encoder": {
            "name": encoder.name,
            "weights": encoder.weights,
            "pool": encoder.pool,
            "dtype": str(encoder.dtype).removeprefix("torch."),
            "preprocessing": dataclasses.asdict(encoder.preprocessing),
        },
        "image": {
            "name": image.photo.name,
            "sha256": image.photo.digest,
            "photo_size": list(image.photo.size),
            "input_size": list(image.pixels.shape[1:]),
            "box": list(image.photo.box),
        },
        "seed": seed,
        "versions": {"repeat-xai": __version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
    }


def record(method: object, encoder: Encoder, image: Image, *, seed: int, meter: Meter) -> dict[str, Any]:
    """The request, and what it cost where."""
    device = torch.cuda.get_device_name(encoder.device) if encoder.device.type == "cuda" else platform.machine()
    return request(method, encoder, image, seed=seed) | {
        "encoder_calls": meter.calls,
        "seconds": round(meter.seconds, 3),
        "device": f"{encoder.device} ({device})",
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def configuration(thing: object) -> Any:
    """A configuration object as plain JSON, its name with its fields."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {f.name: configuration(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
        return {"name": type(thing).__name__} | fields
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    return getattr(thing, "__qualname__", type(thing).__qualname__)
