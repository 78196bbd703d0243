"""An encoder that has forgotten what it learned, all of it or some of its layers: weights as before any training.

quantus    every layer that can reset itself does, each from the same seed: as the sanity checks of Quantus
full       likewise, and attention as well, which there keeps its training; what has no way to reset itself,
           such as a class token, is shuffled
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import nn

from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.errors import EncoderError, choose
from repeat_xai.types import Encoder

Randomise = Literal["quantus", "full"]
Order = Literal["top_down", "bottom_up", "independent"]
SEED = 43
"""As Quantus has it."""
HARDLY = 1e-4
"""Codes that move by a smaller share of their length have similarities that float32's rounding spoils."""
WAYS = {"quantus": ("reset_parameters",), "full": ("reset_parameters", "_reset_parameters")}
"""How layers call it."""


def randomised(encoder: Encoder, randomise: Randomise = "quantus") -> TorchEncoder:
    """A copy of the encoder without its training; the encoder itself is not touched.

    It is run by torch, never in half precision, and in double where codes hardly differ: else they would be lost.
    """
    given, names = _layers(encoder, randomise)
    module = _copied(given.module)
    for name in reversed(names):
        _forget(module.get_submodule(name), randomise)
    return _with(given, module, f"randomised ({randomise}, seed {SEED})")


def forgetting(
    encoder: Encoder, randomise: Randomise = "quantus", *, order: Order = "top_down"
) -> Iterator[tuple[str, TorchEncoder]]:
    """Copies of the encoder, each with a further layer randomised, by its name; or, independent, with that layer alone.

    Layers are in the order in which the network holds them, from its last or from its first. What it holds itself, such
    as a class token, goes by the encoder's name.
    """
    choose("order", order, get_args(Order))
    given, names = _layers(encoder, randomise)
    return _steps(given, names[::-1] if order == "top_down" else names, randomise, order)


def _steps(
    given: TorchEncoder, names: list[str], randomise: Randomise, order: Order
) -> Iterator[tuple[str, TorchEncoder]]:
    module = given.module
    for name in names:
        module = _copied(given.module if order == "independent" else module)
        _forget(module.get_submodule(name), randomise)
        layer = name or given.name
        yield layer, _with(given, module, f"randomised ({randomise}, {order}) as far as {layer}")


def _layers(encoder: Encoder, randomise: Randomise) -> tuple[TorchEncoder, list[str]]:
    """The layers that can be randomised, as the network names them."""
    choose("randomise", randomise, get_args(Randomise))
    if not isinstance(encoder, TorchEncoder):
        raise EncoderError(
            f"{encoder.name} cannot be randomised: its weights are not ours to change; use a torch module"
        )
    names = [
        name
        for name, part in encoder.module.named_modules()
        if _way(part, randomise) or (randomise == "full" and list(part.parameters(recurse=False)))
    ]
    if not names:
        raise EncoderError(f"{encoder.name} has no layer that can be reset; try randomise='full'")
    return encoder, names


def _way(layer: nn.Module, randomise: Randomise) -> str | None:
    return next((way for way in WAYS[randomise] if callable(getattr(layer, way, None))), None)


def _forget(layer: nn.Module, randomise: Randomise) -> None:
    """Reset the layer, or shuffle what it holds itself, from the one seed; torch's generators go on as they were."""
    way = _way(layer, randomise)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        if way:
            getattr(layer, way)()
            return
        for parameter in layer.parameters(recurse=False):
            order = torch.randperm(parameter.numel()).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))


def _copied(module: nn.Module) -> nn.Module:
    """On the host, whose generator gives every device the same weights."""
    return copy.deepcopy(module).cpu().requires_grad_(False)


def _with(encoder: TorchEncoder, module: nn.Module, how: str) -> TorchEncoder:
    there = copy.deepcopy(module).to(encoder.device)
    blank = replace(encoder, module=there, weights=f"{encoder.weights}, {how}", runtime="torch")
    if _moved(blank) < HARDLY:
        return replace(blank, module=there.double(), precision="float64")
    return replace(blank, precision="float32")


def _moved(encoder: TorchEncoder) -> float:
    """How far the code of a made-up image moves when half of the image is masked, as a share of its length."""
    height, width = encoder.preprocessing.size
    noise = torch.randn(len(encoder.preprocessing.mean), height, width, generator=torch.Generator().manual_seed(SEED))
    masked = noise * (torch.arange(width) < width // 2)
    with torch.inference_mode():
        code, other = encoder(torch.stack((noise, masked)).to(encoder.device, encoder.dtype)).double()
    return float((other - code).norm() / code.norm().clamp_min(1e-300))
