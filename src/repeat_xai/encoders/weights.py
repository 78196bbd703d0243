"""Files of weights: read without running code that is in them, and loaded into a module that they must fit."""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from repeat_xai.errors import EncoderError, OutputError, reason
from repeat_xai.files.reading import open_regular

WRAPPERS = ("state_dict", "model_state_dict", "model", "teacher", "student")
"""Keys under which training scripts save the weights."""
MAX_WRAPPERS = 8
"""Number of such keys that may lie in each other: a state dict may contain itself."""
MAX_SHARING = 4
"""How often tensors may share the bytes of their file, as tied layers do."""
HARMLESS_BYTES = 2**20
"""Size that tensors may have, however small their file is."""


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or a torch state dict by name; refuse a pickle that would run code."""
    try:
        with open_regular(path) as file:
            size, start = os.fstat(file.fileno()).st_size, file.read(9)
            if not size:
                raise EncoderError(f"{path}: the file of weights is empty; copy it again")
        if path.suffix.lower() == ".safetensors" or start[8:] == b"{":  # a length in eight bytes, then JSON
            content = safetensors.torch.load_file(path)
        else:
            _expect_not_packed(path, size)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise EncoderError(f"{path}: no such file of weights") from error
    except OutputError as error:
        raise EncoderError(f"{path}: is not a regular file; give a file of weights") from error
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
    tensors = _unwrapped(path, content)
    if sum(tensor.nbytes for tensor in tensors.values()) > MAX_SHARING * size + HARMLESS_BYTES:
        raise EncoderError(f"{path}: its tensors claim more values than the file holds; save the module's state_dict()")
    return tensors


def describe_weights(weights: str | Path | None, *, default: str = "") -> str:
    """Return how provenance names an encoder's weights: a file by its name and SHA-256, a folder by its files."""
    if isinstance(weights, Path) and weights.is_dir():
        tensors = sorted(weights.glob("*.safetensors")) or sorted(weights.glob("*.bin"))
        return " and ".join(describe_weights(file) for file in (weights / "config.json", *tensors))
    if isinstance(weights, Path):
        with open_regular(weights) as file:
            return f"{weights.name} (sha256 {hashlib.file_digest(file, 'sha256').hexdigest()[:16]})"
    return weights or default


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], *, allowed: Collection[str], origin: str) -> None:
    """Load every tensor that the module needs; raise an EncoderError if one is missing, misshapen or unknown.

    `allowed` names tensors that may be there although the module has no use for them, such as those of a classifier.
    """
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
                f"{origin}: the weights do not fit the encoder: {len(keys)} tensors {problem}, first {keys[0][:100]!r}"
            )
    module.load_state_dict({k: weights[k].to(needed[k].dtype) for k in shared}, strict=False)


def _expect_not_packed(path: Path, size: int) -> None:
    """Refuse a ZIP file that unpacks to far more than its size: torch compresses nothing but the code of scripts."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_SHARING * size + HARMLESS_BYTES:
                raise EncoderError(f"{path}: is packed, as no file of weights is; unpack it first")


def _unwrapped(path: Path, content: Any) -> dict[str, Tensor]:
    """Return the tensors by name, taken out of what a training script has wrapped around them."""
    for _ in range(MAX_WRAPPERS):
        inner = next((w for w in WRAPPERS if w in content), None) if isinstance(content, Mapping) else None
        content = content if inner is None else content[inner]
    plain = isinstance(content, Mapping) and all(isinstance(k, str) and in_memory(v) for k, v in content.items())
    if not plain or not content:
        raise EncoderError(f"{path}: holds no tensors by name; save the module's state_dict()")
    prefix = "module." if all(k.startswith("module.") for k in content) else ""
    return {k.removeprefix(prefix): v for k, v in content.items()}


def in_memory(value: object) -> bool:
    """Return whether the value is a tensor that holds a number in memory for each of its elements."""
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return False
    return not (value.is_meta or value.is_quantized or value.is_nested)
