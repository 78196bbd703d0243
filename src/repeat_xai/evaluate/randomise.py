"""An encoder that has forgotten all it learned: the same network with weights as before any training.

quantus    every layer that can reset itself does, each from the same seed: as the sanity checks of Quantus
full       likewise, and attention as well, which there keeps its training; what has no way to reset itself,
           such as a class token, is shuffled
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from repeat_xai.encoders.module import TorchEncoder
from repeat_xai.errors import EncoderError, choose
from repeat_xai.types import Encoder

Randomise = Literal["quantus", "full"]
SEED = 43
"""As Quantus has it."""


def randomised(encoder: Encoder, randomise: Randomise = "quantus") -> TorchEncoder:
    """A copy of the encoder without its training; the encoder itself is not touched.

    It is run by torch in its own precision: codes that hardly differ would be lost in half of it.
    """
    choose("randomise", randomise, get_args(Randomise))
    if not isinstance(encoder, TorchEncoder):
        raise EncoderError(
            f"{encoder.name} cannot be randomised: its weights are not ours to change; use a torch module"
        )
    module = copy.deepcopy(encoder.module).requires_grad_(False)
    with torch.random.fork_rng(devices=[encoder.device] if encoder.device.type == "cuda" else []), torch.no_grad():
        reset = _reset(module, "reset_parameters")
        if randomise == "full":
            reset |= _reset(module, "_reset_parameters")
            torch.manual_seed(SEED)
            for parameter in module.parameters():
                if parameter.data_ptr() not in reset:
                    order = torch.randperm(parameter.numel()).to(parameter.device)
                    parameter.copy_(parameter.flatten()[order].view_as(parameter))
    if not reset:
        raise EncoderError(f"{encoder.name} has no layer that can be reset; try randomise='full'")
    weights = f"{encoder.weights}, randomised ({randomise})"
    return replace(encoder, module=module, weights=weights, runtime="torch", precision="auto")


def _reset(module: nn.Module, how: str) -> set[int]:
    """Reset every part that knows how; the parameters it has, by where they lie."""
    done: set[int] = set()
    for part in module.modules():
        reset = getattr(part, how, None)
        if callable(reset):
            torch.manual_seed(SEED)
            reset()
            done |= {parameter.data_ptr() for parameter in _own(part)}
    return done


def _own(part: nn.Module) -> list[Tensor]:
    return list(part.parameters(recurse=False))
