"""A name or a module → an encoder."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from repeat_xai.encoders import embedded, huggingface, onnx, timm, torchvision
from repeat_xai.encoders.onnx import OnnxEncoder
from repeat_xai.encoders.torch_encoder import DEVICES, Precision, Runtime, TorchEncoder, from_module
from repeat_xai.errors import ConfigurationError, EncoderError, at_least, choose
from repeat_xai.types import MOST_SIDE, Preprocessing

SOURCES = {"torchvision": torchvision, "timm": timm}

__all__ = ["OnnxEncoder", "TorchEncoder", "load_encoder", "names", "placed"]


def names() -> list[str]:
    """Every name `load_encoder` knows without asking the hub or looking into a folder."""
    return [embedded.NAME, *(f"{source}:{name}" for source, module in SOURCES.items() for name in module.names())]


def load_encoder(
    source: str | nn.Module,
    *,
    weights: str | Path | None = None,
    pool: str | None = None,
    size: int | None = None,
    preprocessing: Preprocessing | None = None,
    name: str | None = None,
    device: str = "auto",
    precision: Precision = "auto",
    runtime: Runtime = "auto",
) -> TorchEncoder | OnnxEncoder:
    """The encoder of that name, or the module itself, ready to turn images into codes.

    A name is efficientnet_lite0, torchvision:NAME, timm:NAME, hf:NAME_OR_FOLDER or onnx:FILE.
    `weights`: a local safetensors file or state dict; one of torchvision's by name, such as "IMAGENET1K_V1"; "random"
    for an untrained network; else the source's default. `pool`: which tensor is the representation: avg, max, cls,
    flatten, none, or head (timm's and hf's own). `size`: side of the square input, if not the encoder's own.
    `preprocessing` and `name`: of a module of your own. `device`: auto takes a GPU if there is one, and leaves a module
    where it is. `precision` and `runtime`: how its masked copies are encoded, if not as is quickest without harm.
    """
    where = _device(device)
    choose("precision", precision, get_args(Precision))
    choose("runtime", runtime, get_args(Runtime))
    if size is not None:
        at_least("size", size, 1, MOST_SIDE)
    if isinstance(source, nn.Module):
        if weights is not None:
            raise ConfigurationError("a module has its weights already; give a name to load a file of weights")
        chosen = None if device == "auto" else where
        encoder = from_module(source, pool=pool, size=size, preprocessing=preprocessing, device=chosen, name=name)
        return _run_by(encoder, precision, runtime)
    if not isinstance(source, str):
        raise ConfigurationError(f"an encoder is made from a name or an nn.Module, not from {type(source).__name__}")
    if source.startswith("onnx:"):
        if (weights, name) != (None, None):
            raise ConfigurationError("an ONNX file has its own weights and name")
        if precision != "auto" or runtime not in ("auto", "onnxruntime") or device not in ("auto", "cpu"):
            raise ConfigurationError("an ONNX file is run by ONNX Runtime, on the CPU, in the precision it has")
        return onnx.load(Path(source.removeprefix("onnx:")), pool=pool, size=size, preprocessing=preprocessing)
    if preprocessing is not None or name is not None:
        raise ConfigurationError("a named encoder has its own name and preprocessing; give a module to choose others")
    encoder = placed(_named(source, weights=weights, pool=pool, size=size), device)
    return _run_by(encoder, precision, runtime)


def placed(encoder: TorchEncoder, device: str) -> TorchEncoder:
    """Move a named encoder's own module to a device, frozen, and in the memory format that convolutions like best."""
    where = _device(device)
    try:
        encoder.module.requires_grad_(False).eval().to(where).to(memory_format=torch.channels_last)
    except torch.OutOfMemoryError as error:
        raise EncoderError(f"{encoder.name} does not fit into the memory of {where}; use device cpu") from error
    return encoder


def _run_by(encoder: TorchEncoder, precision: Precision, runtime: Runtime) -> TorchEncoder:
    single = encoder.dtype == torch.float32 and precision in ("auto", "float32")
    if runtime == "onnxruntime" and (encoder.device.type != "cpu" or not single):
        raise ConfigurationError("onnxruntime runs encoders on the CPU, in float32; choose another runtime")
    return replace(encoder, precision=precision, runtime=runtime)


def _named(source: str, *, weights: str | Path | None, pool: str | None, size: int | None) -> TorchEncoder:
    file = weights if weights is None or weights == "random" else Path(weights)
    if source == embedded.NAME:
        if weights is not None:
            raise ConfigurationError(
                f"{embedded.NAME} has its weights built in; use timm:tf_efficientnet_lite0 for others"
            )
        return embedded.load(pool=pool, size=size)
    room, _, name = source.partition(":")
    if room == "hf" and name:
        return huggingface.load(name, weights=file, pool=pool, size=size)
    if room in SOURCES and name.partition(".")[0] in SOURCES[room].names():
        encoder: TorchEncoder = SOURCES[room].load(name, weights=file, pool=pool, size=size)
        return encoder
    raise EncoderError(f"unknown encoder '{source}'; {_nearest(source)}")


def _nearest(source: str) -> str:
    wanted, alike = difflib.SequenceMatcher(b=source), {}
    for name in names():
        wanted.set_seq1(name if ":" in source else name.rpartition(":")[2])
        alike[name] = wanted.ratio()
    near = sorted(alike, key=lambda name: -alike[name])[:3]
    if alike[near[0]] > 0.7:
        return f"did you mean {' or '.join(near)}?"
    return f"give {embedded.NAME}, torchvision:NAME, timm:NAME, hf:NAME_OR_FOLDER or onnx:FILE"


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigurationError(f"unknown device '{name}'; choose auto, cpu or cuda") from error
    if device.type not in DEVICES:
        raise ConfigurationError(f"device '{name}' is not supported; choose auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(f"there is no device '{name}' on this machine; choose auto or cpu")
    return device
