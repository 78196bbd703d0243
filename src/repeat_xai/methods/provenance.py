"""What made a result: enough to make it again."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import PIL
import timm
import torch
import torchvision
from torch import Tensor

from repeat_xai.encoders.onnx import OnnxEncoder
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.scheduler import Answer
from repeat_xai.types import Encoder, Explanation, Image
from repeat_xai.version import __version__

if TYPE_CHECKING:
    from repeat_xai.types import Map

VERSIONS = {module.__name__: str(module.__version__) for module in (torch, torchvision, timm, numpy, PIL)}
for package in ("onnxruntime", "captum", "scikit-learn", "scikit-image", "transformers"):
    with suppress(PackageNotFoundError):  # it may be missing, or be another build of it
        VERSIONS[package] = version(package)


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
            "precision": encoder.precision if isinstance(encoder, TorchEncoder) else "its own",
        },
        "image": {
            "sha256": image.photo.digest,
            "preprocessing": "none" if preprocessing is None else dataclasses.asdict(preprocessing),
        },
        "seed": int(seed),
        "repeat-xai": __version__,
    }


class Maps(NamedTuple):
    """What a method finds out about one image."""

    importance: Map
    uncertainty: Map
    vote_share: Map | None = None
    about: Mapping[str, Any] = {}
    """How it went, for the record."""


def explained(
    answers: Iterator[Answer[Maps]], method: object, encoder: Encoder, *, seed: int
) -> Iterator[Answer[Explanation]]:
    """Maps as explanations, with what made them and what they cost."""
    for answer in answers:
        image = answer.image
        about = request(method, encoder, image, seed=seed) | _setting(encoder, image)
        about |= {"encoder_calls": answer.calls, "seconds": round(answer.seconds, 3), "ran": dict(answer.ran)}
        yield answer.to(partial(_explanation, image=image, about=about))


def _explanation(maps: Maps, *, image: Image, about: Mapping[str, Any]) -> Explanation:
    return Explanation(
        importance=maps.importance.float(),
        uncertainty=maps.uncertainty.float(),
        vote_share=None if maps.vote_share is None else maps.vote_share.float(),
        photo=image.photo,
        provenance={**about, **maps.about},
    )


def _setting(encoder: Encoder, image: Image) -> dict[str, Any]:
    """What was explained where, with what and when."""
    device = torch.cuda.get_device_name(encoder.device) if encoder.device.type == "cuda" else platform.machine()
    return {
        "photo": {
            "name": image.photo.name,
            "size": list(image.photo.size),
            "box": list(image.photo.box),
            "input_size": list(image.pixels.shape[1:]),
        },
        "device": f"{encoder.device} ({device})",
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"python": platform.python_version()} | VERSIONS,
    }


def configuration(thing: object) -> Any:
    """A configuration as plain JSON: its name with the fields that make it what it is; images by their digest."""
    if isinstance(thing, Image):
        how = thing.preprocessing
        return {"sha256": thing.photo.digest, "preprocessing": "none" if how is None else dataclasses.asdict(how)}
    if isinstance(thing, TorchEncoder | OnnxEncoder):
        return {"name": thing.name, "weights": thing.weights, "pool": thing.pool}
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = {f.name: configuration(getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.compare}
        return {"name": type(thing).__name__} | fields
    if isinstance(thing, tuple | list):
        return [configuration(part) for part in thing]
    if isinstance(thing, Mapping):
        return {str(name): configuration(part) for name, part in thing.items()}
    if isinstance(thing, Tensor):
        content = thing.detach().cpu().contiguous().numpy().tobytes()
        return {"sha256": hashlib.sha256(content).hexdigest(), "shape": list(thing.shape)}
    if thing is None or isinstance(thing, bool | str):
        return thing
    if isinstance(thing, Real):
        return int(thing) if isinstance(thing, Integral) else float(thing)
    return getattr(thing, "__qualname__", type(thing).__qualname__)
