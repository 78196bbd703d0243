"""Copies of an encoder that have lost what they learned, in all layers or in some: weights as before any training.

quantus    every layer that can reset itself does, each from the same seed, as in the sanity checks of Quantus
full       attention, which Quantus leaves trained, is reset as well, and parameters that cannot be reset, such as a
           class token, are shuffled
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
LayerOrder = Literal["top_down", "bottom_up", "independent"]
SEED = 43
"""The seed of every layer's new weights: Quantus' default of 42, which it raises by one."""
LEAST_CODE_CHANGE = 1e-4
"""The least change of a code, as a share of its length, for which float32 still tells similarities apart."""
RESET_METHODS = {"quantus": ("reset_parameters",), "full": ("reset_parameters", "_reset_parameters")}
"""Names of the methods by which layers reset themselves; `_reset_parameters` is torch's name in its attention."""


def randomise_encoder(encoder: Encoder, randomise: Randomise = "quantus") -> TorchEncoder:
    """Return a copy of the encoder with all its layers randomised; the encoder itself is left as it is.

    The copy is run by torch and never in half precision; it is run in double precision where its codes hardly change
    when the image is masked, because float32 would lose the difference.
    """
    torch_encoder, names = _layers(encoder, randomise)
    module = _copy_on_cpu(torch_encoder.module)
    for name in reversed(names):
        _randomise_layer(module.get_submodule(name), randomise)
    return _with_module(torch_encoder, module, f"randomised ({randomise}, seed {SEED})")


def randomise_layer_by_layer(
    encoder: Encoder, randomise: Randomise = "quantus", *, order: LayerOrder = "top_down"
) -> Iterator[tuple[str, TorchEncoder]]:
    """Yield copies of the encoder with one more layer randomised each, together with the layer's name.

    `order` begins with the network's last layer ("top_down") or its first ("bottom_up"), or randomises each layer alone
    ("independent"). Layers are in the order in which the network registers them. Parameters of the network itself, such
    as a class token, count as a layer with the encoder's name.
    """
    choose("order", order, get_args(LayerOrder))
    torch_encoder, names = _layers(encoder, randomise)
    return _steps(torch_encoder, names[::-1] if order == "top_down" else names, randomise, order)


def _steps(
    encoder: TorchEncoder, names: list[str], randomise: Randomise, order: LayerOrder
) -> Iterator[tuple[str, TorchEncoder]]:
    module = encoder.module
    for name in names:
        module = _copy_on_cpu(encoder.module if order == "independent" else module)
        _randomise_layer(module.get_submodule(name), randomise)
        layer = name or encoder.name
        yield layer, _with_module(encoder, module, f"randomised ({randomise}, {order}) as far as {layer}")


def _layers(encoder: Encoder, randomise: Randomise) -> tuple[TorchEncoder, list[str]]:
    """Return the encoder as a torch encoder, and the names of the layers that can be randomised."""
    choose("randomise", randomise, get_args(Randomise))
    if not isinstance(encoder, TorchEncoder):
        raise EncoderError(f"{encoder.name} cannot be randomised: its weights cannot be changed; use a torch module")
    names = [
        name
        for name, part in encoder.module.named_modules()
        if _reset_method(part, randomise) or (randomise == "full" and list(part.parameters(recurse=False)))
    ]
    if not names:
        raise EncoderError(f"{encoder.name} has no layer that can be reset; try randomise='full'")
    return encoder, names


def _reset_method(layer: nn.Module, randomise: Randomise) -> str | None:
    """Return the name of the method by which a layer resets itself, if it has one."""
    return next((name for name in RESET_METHODS[randomise] if callable(getattr(layer, name, None))), None)


def _randomise_layer(layer: nn.Module, randomise: Randomise) -> None:
    """Reset the layer, or shuffle its own parameters, from the one seed; the state of torch's generator is restored."""
    reset = _reset_method(layer, randomise)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        if reset:
            getattr(layer, reset)()
            return
        for parameter in layer.parameters(recurse=False):
            order = torch.randperm(parameter.numel()).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))


def _copy_on_cpu(module: nn.Module) -> nn.Module:
    """Return a copy on the CPU, whose generator gives the same weights whichever device the encoder runs on."""
    return copy.deepcopy(module).cpu().requires_grad_(False)


def _with_module(encoder: TorchEncoder, module: nn.Module, description: str) -> TorchEncoder:
    """Return the encoder with another network, in the precision that its codes need."""
    on_device = copy.deepcopy(module).to(encoder.device)
    randomised = replace(encoder, module=on_device, weights=f"{encoder.weights}, {description}", runtime="torch")
    if _code_change(randomised) < LEAST_CODE_CHANGE:
        return replace(randomised, module=on_device.double(), precision="float64")
    return replace(randomised, precision="float32")


def _code_change(encoder: TorchEncoder) -> float:
    """Return how far the code of an image of noise moves when its left half is masked, as a share of its length."""
    height, width = encoder.preprocessing.size
    noise = torch.randn(len(encoder.preprocessing.mean), height, width, generator=torch.Generator().manual_seed(SEED))
    masked = noise * (torch.arange(width) < width // 2)
    with torch.inference_mode():
        code, other = encoder(torch.stack((noise, masked)).to(encoder.device, encoder.dtype)).double()
    return float((other - code).norm() / code.norm().clamp_min(1e-300))
