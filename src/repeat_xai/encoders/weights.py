"""A file of weights → tensors, without running what is in it, and tensors → a module they must fit."""

from __future__ import annotations

import hashlib
import pickle
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from repeat_xai.errors import EncoderError

WRAPPERS = ("state_dict", "model_state_dict", "model", "teacher", "student")
"""Keys under which training scripts tuck the weights away."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """Weights by name from a safetensors file or a torch state dict; a pickle that would run code is refused."""
    try:
        if not path.stat().st_size:
            raise EncoderError(f"{path}: the file of weights is empty; copy it again")
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise EncoderError(f"{path}: no such file of weights") from error
    except safetensors.SafetensorError as error:
        raise EncoderError(f"{path}: not a safetensors file, or cut short ({error})") from error
    except pickle.UnpicklingError as error:
        raise EncoderError(
            f"{path}: refused, it is not plain tensors and could run code when opened; save it as safetensors"
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise EncoderError(f"{path}: cannot be read as weights ({str(error).splitlines()[0]})") from error
    return _unwrapped(path, content)


def described(weights: str | Path | None, *, default: str) -> str:
    """What the provenance says of an encoder's weights: a file by its name and content."""
    if isinstance(weights, Path):
        return f"{weights.name} (sha256 {hashlib.sha256(weights.read_bytes()).hexdigest()[:16]})"
    return weights or default


def fit(module: nn.Module, weights: Mapping[str, Tensor], *, allowed: Collection[str], origin: str) -> None:
    """Load every tensor the module needs; a missing, misshapen or unknown one is an error, one in `allowed` is not."""
    needed = module.state_dict()
    missing = [k for k in needed if k not in weights and not k.endswith("num_batches_tracked")]
    unknown = [k for k in weights if k not in needed and k not in allowed]
    misshapen = [k for k in needed if k in weights and weights[k].shape != needed[k].shape]
    for problem, keys in (("missing", missing), ("unknown", unknown), ("of another shape", misshapen)):
        if keys:
            raise EncoderError(
                f"{origin}: the weights do not fit the encoder: {len(keys)} tensors {problem}, first '{keys[0]}'"
            )
    module.load_state_dict({k: weights[k].to(v.dtype) for k, v in needed.items() if k in weights}, strict=False)


def _unwrapped(path: Path, content: Any) -> dict[str, Tensor]:
    while isinstance(content, Mapping) and (inner := next((w for w in WRAPPERS if w in content), None)):
        content = content[inner]
    if not isinstance(content, Mapping) or not all(isinstance(v, Tensor) for v in content.values()) or not content:
        raise EncoderError(f"{path}: holds no tensors by name; save the module's state_dict()")
    prefix = "module." if all(k.startswith("module.") for k in content) else ""
    return {k.removeprefix(prefix): v for k, v in content.items()}
