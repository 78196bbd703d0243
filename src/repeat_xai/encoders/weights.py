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

from repeat_xai.errors import EncoderError, reason

WRAPPERS = ("state_dict", "model_state_dict", "model", "teacher", "student")
"""Keys under which training scripts tuck the weights away."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """Weights by name from a safetensors file or a torch state dict; a pickle that would run code is refused."""
    try:
        if not path.stat().st_size:
            raise EncoderError(f"{path}: the file of weights is empty; copy it again")
        if _is_safetensors(path):
            return _unwrapped(path, safetensors.torch.load_file(path))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise EncoderError(f"{path}: no such file of weights") from error
    except safetensors.SafetensorError as error:
        raise EncoderError(f"{path}: not a safetensors file, or cut short ({reason(error)})") from error
    except pickle.UnpicklingError as error:
        raise EncoderError(
            f"{path}: refused, it is damaged or would run code when opened; save its tensors as safetensors"
        ) from error
    except EncoderError:
        raise
    except Exception as error:  # torch meets damaged files with errors of every kind
        raise EncoderError(f"{path}: cannot be read as weights ({reason(error)})") from error
    return _unwrapped(path, content)


def described(weights: str | Path | None, *, default: str = "") -> str:
    """What the provenance says of an encoder's weights: a file by its name and content, a folder by its files."""
    if isinstance(weights, Path) and weights.is_dir():
        found = sorted(weights.glob("*.safetensors")) or sorted(weights.glob("*.bin"))
        return " and ".join(described(file) for file in (weights / "config.json", *found))
    if isinstance(weights, Path):
        with weights.open("rb") as file:
            return f"{weights.name} (sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]})"
    return weights or default


def fit(module: nn.Module, weights: Mapping[str, Tensor], *, allowed: Collection[str], origin: str) -> None:
    """Load every tensor the module needs; a missing, misshapen or unknown one is an error, one in `allowed` is not."""
    needed = module.state_dict()
    missing = [k for k in needed if k not in weights and not k.endswith("num_batches_tracked")]
    unknown = [k for k in weights if k not in needed and k not in allowed]
    shared = [k for k in needed if k in weights]
    misshapen = [k for k in shared if weights[k].shape != needed[k].shape]
    mistyped = [k for k in shared if weights[k].is_floating_point() != needed[k].is_floating_point()]
    for problem, keys in (
        ("missing", missing),
        ("unknown", unknown),
        ("of another shape", misshapen),
        ("of another type", mistyped),
    ):
        if keys:
            raise EncoderError(
                f"{origin}: the weights do not fit the encoder: {len(keys)} tensors {problem}, first '{keys[0]}'"
            )
    module.load_state_dict({k: weights[k].to(needed[k].dtype) for k in shared}, strict=False)


def _is_safetensors(path: Path) -> bool:
    """A length in eight bytes, then JSON."""
    with path.open("rb") as file:
        return path.suffix.lower() == ".safetensors" or file.read(9)[8:] == b"{"


def _unwrapped(path: Path, content: Any) -> dict[str, Tensor]:
    while isinstance(content, Mapping) and (inner := next((w for w in WRAPPERS if w in content), None)):
        content = content[inner]
    plain = isinstance(content, Mapping) and all(
        isinstance(k, str) and isinstance(v, Tensor) and v.layout == torch.strided and not v.is_meta
        for k, v in content.items()
    )
    if not content or not plain:
        raise EncoderError(f"{path}: holds no tensors by name; save the module's state_dict()")
    prefix = "module." if all(k.startswith("module.") for k in content) else ""
    return {k.removeprefix(prefix): v for k, v in content.items()}
