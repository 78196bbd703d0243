"""Loading an encoder by its name or from a module: `load_encoder`, and the names it knows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from repeat_xai.encoders import huggingface, onnx, open_clip, timm, torchvision
from repeat_xai.encoders.onnx import OnnxEncoder
from repeat_xai.encoders.torch_encoder import (
    DEVICES,
    Precision,
    Runtime,
    TorchEncoder,
    from_module,
    sized,
    unsupported,
)
from repeat_xai.errors import ConfigurationError, EncoderError, at_least, choose, nearest
from repeat_xai.types import MOST_SIDE, Preprocessing

SOURCES = {"torchvision": torchvision, "timm": timm, "open_clip": open_clip}
"""Libraries of networks that are loaded by SOURCE:NAME."""
CHANNELS = 3
"""Channels of the images that these libraries' networks take."""


def names() -> list[str]:
    """Return every name that `load_encoder` knows without asking the hub or looking into a folder."""
    return [timm.EMBEDDED, *(f"{source}:{name}" for source, library in SOURCES.items() for name in library.names())]


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
    """Load an encoder by its name, or make one from a torch module.

    An encoder turns a batch of preprocessed images into codes, one vector for each image. It is run in evaluation mode
    and without gradients, and a module of your own is left as it was found.

    Args:
        source: What to load, one of

            - ``"efficientnet_lite0"``: EfficientNet-Lite0, whose weights are installed with this package;
            - ``"torchvision:NAME"`` or ``"timm:NAME"``: a network of these libraries, such as ``torchvision:resnet50``;
            - ``"hf:NAME_OR_FOLDER"``: a vision model of Hugging Face's transformers, from its hub or from a folder;
            - ``"open_clip:NAME"``: a model of open_clip, such as ``open_clip:ViT-B-32``;
            - ``"onnx:FILE"``: a network in an ONNX file;
            - a ``torch.nn.Module`` that takes images and returns a tensor. It is tried once on a made-up image, and
              refused if it returns anything else;
            - a vision model object of transformers, which is pooled as ``hf:`` pools it.
        weights: Weights of a named encoder: the path of a safetensors file or a torch state dict, the name of a set of
            torchvision's such as ``"IMAGENET1K_V1"`` or of open_clip's such as ``"laion2b_s34b_b79k"``, or ``"random"``
            for an untrained network, which is always the same one. By default the library's own, downloaded at the
            first use; a model for which open_clip has several sets of weights has no default.
        pool: How the network's features become one code for each image: ``"avg"`` or ``"max"`` over places or tokens,
            ``"cls"`` for the class token, ``"flatten"`` for every value, ``"none"`` for features that are codes
            already, or ``"head"`` for the pooling that a network of timm or transformers has itself. ``"projection"``
            is the projection into the space of images and texts, for CLIP, SigLIP and the like (transformers), and the
            only one of open_clip's models: such an encoder has ``encode_text``. By default a named encoder's own, and
            ``"none"`` for a module or an ONNX file.
        size: Side in pixels of the square images that the encoder is given. By default its own size, or 224 for a
            module.
        preprocessing: How photos are resized, cropped and normalised. By default that of the encoder's training, where
            it is known: a module, an ONNX file, or a model object that was saved without an image processor gets
            ImageNet's.
        name: Name of a module in results. By default the name of its class.
        device: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``. ``"auto"`` is the GPU if there is one, and leaves a module on the
            device where it is; on another device a copy of it is run. Apple's ``"mps"`` is not supported, because it
            lacks float64, in which sums over masked copies are kept.
        precision: Precision in which masked copies of an image are encoded: ``"float16"``, ``"bfloat16"``,
            ``"float32"`` or ``"float64"``. ``"auto"`` is half precision on a GPU where that does not change votes, else
            the network's own.
        runtime: What runs the masked copies: ``"torch"``, ``"compiled"`` (by ``torch.compile``) or ``"onnxruntime"``.
            ``"auto"`` is ONNX Runtime on a CPU where it gives the same codes, else torch, compiled in long runs.

    Returns:
        An encoder with its ``name``, ``weights``, ``pool`` and ``preprocessing``, all of which are recorded in the
        provenance of every explanation. Call it on a batch [batch, channels, height, width] for codes [batch, dim], and
        its ``encode_text``, if it is not None, on a list of texts for codes [texts, dim] of the same space.

    Raises:
        ConfigurationError: If a name is unknown or options contradict each other.
        EncoderError: If weights cannot be read or downloaded or do not fit, or a module does not return a tensor.

    Example:
        >>> encoder = load_encoder("efficientnet_lite0", device="cpu")
        >>> encoder.pool, encoder.preprocessing.size
        ('avg', (224, 224))
        >>> backbone = nn.Sequential(nn.Conv2d(3, 8, 7, stride=4), nn.ReLU())
        >>> load_encoder(backbone, pool="avg", size=64)(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2, 8])
    """
    target = _device(device)
    choose("precision", precision, get_args(Precision))
    choose("runtime", runtime, get_args(Runtime))
    if size is not None:
        at_least("size", size, 1, MOST_SIDE)
        if preprocessing is not None:
            preprocessing, size = sized(preprocessing, size), None
    if isinstance(source, nn.Module):
        if weights is not None:
            raise ConfigurationError("a module has its weights already; give a name to load a file of weights")
        chosen = None if device == "auto" else target
        encoder = _of_module(source, pool=pool, size=size, preprocessing=preprocessing, device=chosen, name=name)
        return _run_by(encoder, precision, runtime)
    if not isinstance(source, str):
        raise ConfigurationError(f"an encoder is made from a name or an nn.Module, not from {type(source).__name__}")
    if name is not None:
        raise ConfigurationError("a named encoder has its own name; give a module to choose another")
    if source.startswith("onnx:") and source != "onnx:":
        if weights is not None:
            raise ConfigurationError("an ONNX file has its own weights")
        if precision != "auto" or runtime not in ("auto", "onnxruntime") or device not in ("auto", "cpu"):
            raise ConfigurationError("an ONNX file is run by ONNX Runtime, on the CPU, in the precision it has")
        return onnx.load(Path(source.removeprefix("onnx:")), pool=pool, size=size, preprocessing=preprocessing)
    encoder = _named(source, weights=weights, pool=pool, size=size, preprocessing=preprocessing)
    return _run_by(placed(encoder, device), precision, runtime)


def placed(encoder: TorchEncoder, device: str) -> TorchEncoder:
    """Move a named encoder's own module to a device, frozen, and in the memory format that suits convolutions best."""
    target = _device(device)
    try:
        for module in (encoder.module, encoder.encode_text and encoder.encode_text.module):
            if module is not None:
                module.requires_grad_(False).eval().to(target).to(memory_format=torch.channels_last)
    except torch.OutOfMemoryError as error:
        raise EncoderError(f"{encoder.name} does not fit into the memory of {target}; use device cpu") from error
    return encoder


def _run_by(encoder: TorchEncoder, precision: Precision, runtime: Runtime) -> TorchEncoder:
    """Return the encoder with the precision and the runtime that were chosen for its masked copies."""
    single = encoder.dtype == torch.float32 and precision in ("auto", "float32")
    if runtime == "onnxruntime" and (encoder.device.type != "cpu" or not single):
        raise ConfigurationError("onnxruntime runs encoders on the CPU, in float32; choose another runtime")
    return replace(encoder, precision=precision, runtime=runtime)


def _of_module(
    module: nn.Module,
    *,
    name: str | None,
    pool: str | None,
    size: int | None,
    preprocessing: Preprocessing | None,
    device: torch.device | None,
) -> TorchEncoder:
    """Return an encoder that runs a module, or a model object of transformers, which returns more than one tensor."""
    if huggingface.is_vision_model(module):
        return huggingface.from_model(
            module, name=name, pool=pool, size=size, preprocessing=preprocessing, device=device
        )
    return from_module(module, name=name, pool=pool, size=size, preprocessing=preprocessing, device=device)


def _named(
    source: str, *, weights: str | Path | None, pool: str | None, size: int | None, preprocessing: Preprocessing | None
) -> TorchEncoder:
    """Return the encoder of a name, before it is placed on a device."""
    file = weights if weights is None or weights == "random" else Path(weights)
    library, _, name = source.partition(":")
    if library == "hf" and name:
        return huggingface.load(name, weights=file, pool=pool, size=size, preprocessing=preprocessing)
    if library == "open_clip":
        open_clip.expect_installed()
    known = library in SOURCES and name.partition(".")[0] in SOURCES[library].names()
    if source != timm.EMBEDDED and not known:
        raise ConfigurationError(f"unknown encoder '{source}'; {_advice(source)}")
    if preprocessing is not None and len(preprocessing.mean) != CHANNELS:
        raise ConfigurationError(f"{source} takes images of {CHANNELS} channels; give a preprocessing of as many means")
    if known:
        encoder: TorchEncoder = SOURCES[library].load(
            name, weights=file, pool=pool, size=size, preprocessing=preprocessing
        )
        return encoder
    if weights is not None:
        raise ConfigurationError(f"{timm.EMBEDDED} has its weights built in; use timm:tf_efficientnet_lite0 for others")
    return timm.load_embedded(pool=pool, size=size, preprocessing=preprocessing)


def _advice(source: str) -> str:
    """Return the names nearest to an unknown one, whether or not it names a library, or else the forms of a name."""
    by_spelling = defaultdict(list)
    for name in () if source.endswith(":") else names():
        by_spelling[name if ":" in source else name.rpartition(":")[2]].append(name)
    near = [name for spelling in nearest(source, by_spelling) for name in by_spelling[spelling]]
    if near:
        return f"did you mean {' or '.join(near[:3])}?"
    return f"give {timm.EMBEDDED}, torchvision:NAME, timm:NAME, hf:NAME_OR_FOLDER, open_clip:NAME or onnx:FILE"


def _device(name: str) -> torch.device:
    """Return the device of a name, if encoders can be run on it and this machine has it."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigurationError(f"unknown device '{name}'; choose auto, cpu or cuda") from error
    if device.type not in DEVICES:
        raise ConfigurationError(f"{unsupported(device)}; choose auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigurationError(f"there is no device '{name}' on this machine; choose auto or cpu")
    return device
