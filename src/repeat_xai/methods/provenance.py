"""The provenance of a result records how it was made.

It suffices to make the result again if the encoder and the rules are loaded by name: a module, or a function of the
user's own, is recorded by its name only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
from repeat_xai.types import Answer, Encoder, Explanation, Image
from repeat_xai.version import __version__

if TYPE_CHECKING:
    from repeat_xai.types import Map

VERSIONS = {module.__name__: str(module.__version__) for module in (torch, torchvision, timm, numpy, PIL)}
for package in ("onnxruntime", "captum", "scikit-learn", "scikit-image", "transformers"):
    with suppress(PackageNotFoundError):  # the package may be missing, or be installed under another name
        VERSIONS[package] = version(package)


class MethodMaps(NamedTuple):
    """The maps that a method makes of one image."""

    importance: Map
    uncertainty: Map | None = None
    """None for a method that does not measure it."""
    vote_share: Map | None = None
    """None for a method that casts no votes."""
    effect: Map | None = None
    """None where the image is compared with itself, and for a method that is not over RELAX."""
    record: Mapping[str, Any] = {}
    """Further facts for the provenance, such as the number of masks that were used."""


def request(method: object, encoder: Encoder, image: Image, *, seed: int) -> dict[str, Any]:
    """Return what decides the maps of an image, up to rounding; results with equal requests count as the same."""
    return settings(method, encoder, seed=seed) | {"image": configuration(image)}


def settings(method: object, encoder: Encoder, *, seed: int) -> dict[str, Any]:
    """Return what decides the maps of all images alike."""
    return {
        "method": configuration(method),
        "encoder": {
            "name": encoder.name,
            "weights": encoder.weights,
            "pool": encoder.pool,
            "dtype": str(encoder.dtype).removeprefix("torch."),
            "precision": encoder.precision if isinstance(encoder, TorchEncoder) else "its own",
        },
        "seed": int(seed),
        "repeat-xai": __version__,
    }


def explanations(
    answers: Iterator[Answer[MethodMaps]], method: object, encoder: Encoder, *, seed: int
) -> Iterator[Answer[Explanation]]:
    """Yield the answers with their maps as explanations, which say what made them and what they cost."""
    for answer in answers:

        def explanation(image: Image, maps: MethodMaps, answer: Answer[MethodMaps] = answer) -> Explanation:
            return explanation_of(image, maps, answer, method, encoder, seed=seed)

        yield answer.with_result(explanation)


def explanation_of(
    image: Image,
    maps: MethodMaps,
    answer: Answer[Any],
    method: object,
    encoder: Encoder,
    *,
    seed: int,
    record: Mapping[str, Any] = {},
) -> Explanation:
    """Return the maps as an explanation, which says what made them and what the answer cost.

    `record` holds further facts for the provenance, beside those of the maps.
    """
    return Explanation(
        importance=maps.importance.float(),
        uncertainty=None if maps.uncertainty is None else maps.uncertainty.float(),
        vote_share=None if maps.vote_share is None else maps.vote_share.float(),
        effect=None if maps.effect is None else maps.effect.float(),
        photo=image.photo,
        provenance=request(method, encoder, image, seed=seed)
        | _circumstances(encoder, image)
        | {"encoder_calls": answer.calls, "seconds": round(answer.seconds, 3), "ran": dict(answer.ran)}
        | dict(maps.record)
        | dict(record),
    )


def _circumstances(encoder: Encoder, image: Image) -> dict[str, Any]:
    """Return the circumstances, which a repeated run need not share: photo's name and size, device, time, versions."""
    device = torch.cuda.get_device_name(encoder.device) if encoder.device.type == "cuda" else platform.machine()
    return {
        "photo": {
            "name": image.photo.name,
            "size": list(image.photo.size),
            "box": list(image.photo.box),
            "input_size": list(image.pixels.shape[1:]),
            "contrast": image.pixels.flatten(1).std(1).mean().item(),
        },
        "device": f"{encoder.device} ({device})",
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {"python": platform.python_version()} | VERSIONS,
    }


def configuration(value: object) -> Any:
    """Return a configuration as plain JSON: its class name with its fields, and images and tensors by their digest.

    Fields that do not change a result, such as the number of copies per batch, are left out.
    """
    if isinstance(value, Image):
        how = value.preprocessing
        return {"sha256": value.photo.digest, "preprocessing": "none" if how is None else dataclasses.asdict(how)}
    if isinstance(value, TorchEncoder | OnnxEncoder):
        return {"name": value.name, "weights": value.weights, "pool": value.pool}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: configuration(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare}
        return {"name": type(value).__name__} | fields
    if isinstance(value, tuple | list):
        return [configuration(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): configuration(part) for name, part in value.items()}
    if isinstance(value, Tensor):
        content = value.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()  # numpy has no bfloat16
        return {"sha256": hashlib.sha256(content).hexdigest(), "shape": list(value.shape)}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return getattr(value, "__qualname__", type(value).__qualname__)
