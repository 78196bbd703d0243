"""`hf:NAME_OR_FOLDER` → encoder: a vision model of Hugging Face's transformers, seen through its own image processor.

Of CLIP and SigLIP the vision tower alone is loaded. ViT-MAE sees every patch, in order.
"""

from __future__ import annotations

import inspect
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, floor
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders import huggingface_preprocessing as processor
from repeat_xai.encoders.torch_encoder import POOLS, Pooled, TorchEncoder, pooled
from repeat_xai.encoders.weights import described
from repeat_xai.errors import ConfigurationError, EncoderError, choose, reason
from repeat_xai.files.reading import read_json
from repeat_xai.types import Preprocessing

TWO_TOWERS = ("clip", "siglip")
"""Models of images and text, of which only the vision tower is wanted."""
HEADED = ("clip_vision_model", "siglip_vision_model")
"""Models trained for what their own head gives."""
SPECIAL = ("cls_token", "class_embedding", "distillation_token", "register_tokens")
"""How models call the tokens that stand for no place and come before those that do."""
PATIENCE = 10
"""Seconds the hub has to answer."""
LONGEST_JSON = 2**26
"""Bytes of a configuration: names of classes and of tensors fill some millions."""
LOADING = threading.Lock()
"""One at a time: while loading, what transformers says is not heard anywhere in the process."""


def load(name: str, *, weights: str | Path | None, pool: str | None, size: int | None) -> TorchEncoder:
    """The model of that name on the hub or in that folder, with its own weights or untrained."""
    choose("pool", pool or "head", ("head", *POOLS))
    if isinstance(weights, Path):
        raise ConfigurationError("an hf: model has its own weights; to load others, give their folder as hf:FOLDER")
    with _quietly():
        config, where = _config(name)
        own = processor.preprocessing(name, where)
        network, lacking = _network(name, config, where, trained=weights is None)
        how = processor.resized(own, size) if size else own
        features = _Features(network)
        output = _probed(name, features, how, asked=size is not None)
    hidden, head = output.last_hidden_state, output.get("pooler_output")
    prefix = _prefix(hidden.shape, how.size, special=_special(network))
    if pool is None and (prefix is None or (config.model_type in HEADED and head is not None)):
        pool = "head"
    pool = pool or ("cls" if prefix else "avg")
    if pool == "head" and (head is None or lacking):
        raise ConfigurationError(f"hf:{name} has no pooling of its own, or no weights for it; choose another pool")
    if pool in ("avg", "max", "cls") and prefix is None:
        raise ConfigurationError(f"hf:{name} gives {list(hidden.shape)}, not a value a place; choose head or flatten")
    if pool != "head":
        pooled(hidden, pool, prefix_tokens=prefix or 0)
    folder = Path(name) if Path(name).is_dir() else None
    return TorchEncoder(
        name=f"hf:{folder.resolve().name if folder else name}",
        weights=described(weights or folder, default=f"{name} at commit {where.get('revision')}"),
        pool=pool,
        preprocessing=how,
        module=_Head(features) if pool == "head" else Pooled(features, pool, prefix_tokens=prefix or 0),
    )


@final
class _Features(nn.Module):
    """Images → the last hidden state; the table of positions is interpolated for images of another size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.config: Any = network.config
        own = getattr(self.config, "image_size", None)
        self.own_size = (own, own) if isinstance(own, int) else tuple(own or ())
        self.interpolates = "interpolate_pos_encoding" in inspect.signature(network.forward).parameters

    def output(self, images: Tensor) -> Any:
        options: dict[str, Any] = {}
        height, width = images.shape[2:]
        if self.interpolates and (height, width) != self.own_size:
            options["interpolate_pos_encoding"] = True
        if self.config.model_type == "vit_mae":  # it sorts the patches by this, and drops none at a mask ratio of 0
            patches = (height // self.config.patch_size) * (width // self.config.patch_size)
            options["noise"] = torch.arange(patches, device=images.device).float().expand(len(images), -1)
        return self.network(pixel_values=images, **options)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.output(images).last_hidden_state
        return features


@final
class _Head(nn.Module):
    """Images → the model's own pooling."""

    def __init__(self, features: _Features) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        codes: Tensor = self.features.output(images).pooler_output
        return codes.flatten(1)


def _config(name: str) -> tuple[Any, dict[str, Any]]:
    """What the model is, and where transformers is to find the rest of it: in the folder, or at one of its commits."""
    import huggingface_hub
    import transformers

    here = Path(name).is_dir()
    offline = "" if here else _unreachable(name)
    where: dict[str, Any] = {"pretrained_model_name_or_path": name, "trust_remote_code": False}
    where["local_files_only"] = here or bool(offline)
    try:
        if here:
            _expect_own_files(Path(name))
        else:
            file = huggingface_hub.hf_hub_download(name, "config.json", local_files_only=bool(offline))
            where["revision"] = Path(file).parent.name
        config = transformers.AutoConfig.from_pretrained(**where)
    except Exception as error:  # transformers meets what it cannot read with errors of every kind
        if offline:
            raise EncoderError(
                f"hf:{name}: no such folder, and the hub cannot be asked ({offline}); give a folder, or go online once"
            ) from error
        raise EncoderError(f"hf:{name}: cannot be read as a model of transformers ({reason(error)})") from error
    if config.model_type in TWO_TOWERS:
        config = config.vision_config
    kind = transformers.MODEL_MAPPING.get(type(config), None)
    if getattr(kind, "main_input_name", None) != "pixel_values":
        raise EncoderError(
            f"hf:{name} is a model '{config.model_type}', which is no vision model that can be explained"
        )
    if config.model_type == "vit_mae":
        config.mask_ratio = 0.0
    return config, where


def _expect_own_files(folder: Path) -> None:
    """Raise a ValueError unless all that transformers may open is regular files in the folder, of which JSON is sane.

    A folder of the hub's cache holds links to files beside it.
    """
    home = folder.resolve()
    homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    named = [entry.name for entry in home.iterdir()] if (home / "config.json").exists() else []
    for path in (*home.glob("*config.json"), *home.glob("*.index.json")):
        content = read_json(path, max_bytes=LONGEST_JSON)
        others = content.get("weight_map", {})
        named += others.values() if isinstance(others, dict) else ()
        named += (content["transformers_weights"],) if content.get("transformers_weights") else ()
    for name in set(map(str, named)):
        target = (home / name).resolve()
        if not any(target.is_relative_to(own) for own in homes):
            raise ValueError(f"{name[:100]!r} leads out of the folder")
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise ValueError(f"{name[:100]!r} is not a regular file")


def _unreachable(name: str) -> str:
    """Why the hub cannot be asked for that model now, if it cannot; a model it does not have is refused."""
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        huggingface_hub.model_info(name, timeout=PATIENCE)
    except HFValidationError as error:
        raise EncoderError(f"hf:{name}: no such folder, and not the name of a model on the hub") from error
    except RepositoryNotFoundError as error:
        raise EncoderError(f"hf:{name}: no such folder, and no such model on the hub, or one to log in for") from error
    except Exception as error:  # the hub's client fails with errors of every kind
        return reason(error)
    return ""


def _network(name: str, config: Any, where: dict[str, Any], *, trained: bool) -> tuple[nn.Module, bool]:
    """The model in float32, and whether its checkpoint lacks the weights of its pooling; no other may be lacking."""
    import transformers

    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            if not trained:
                return transformers.AutoModel.from_config(config, trust_remote_code=False).float().eval(), False
            network, found = transformers.AutoModel.from_pretrained(
                **where, config=config, output_loading_info=True, ignore_mismatched_sizes=True
            )
    except Exception as error:  # as above
        raise EncoderError(f"hf:{name}: the model cannot be loaded ({reason(error)})") from error
    wanting = sorted(k for k in found["missing_keys"] if not k.endswith("num_batches_tracked"))
    missing = [k for k in wanting if not k.startswith("pooler.")]
    misshapen = sorted(str(k[0]) for k in found["mismatched_keys"])
    for problem, keys in (("missing", missing), ("of another shape", misshapen)):
        if keys:
            raise EncoderError(
                f"hf:{name}: the weights do not fit the model: {len(keys)} tensors {problem}, first '{keys[0]}'"
            )
    return network.float().eval(), bool(wanting)


def _probed(name: str, features: _Features, how: Preprocessing, *, asked: bool) -> Any:
    """What the model gives for one image of its size, or of the size asked for."""
    try:
        with torch.no_grad():
            output = features.output(torch.zeros(1, len(how.mean), *how.size))
        if not isinstance(output.last_hidden_state, Tensor):
            raise TypeError("it gives no last_hidden_state")
        return output
    except Exception as error:  # models meet what they cannot do with errors of every kind
        line = f"hf:{name} takes no images of {how.size[0]}×{how.size[1]} ({reason(error)})"
        raise (ConfigurationError if asked else EncoderError)(line) from error


def _special(network: nn.Module) -> int:
    """How many tokens stand for no place, by the parameters they begin as."""
    found = [p for k, p in network.named_parameters() if k.rpartition(".")[2] in SPECIAL]
    return sum(p.shape[1] if p.ndim == 3 else 1 for p in found)


def _prefix(shape: torch.Size, size: tuple[int, int], *, special: int) -> int | None:
    """How many tokens come before those of the places; None where no grid of places is to be seen."""
    steps = range(1, min(size) + 1)
    grids = {(to(size[0] / step), to(size[1] / step)) for step in steps for to in (floor, ceil)}
    if len(shape) == 4:
        return 0 if tuple(shape[2:]) in grids else None
    places = {rows * columns for rows, columns in grids}
    return next((n for n in (special, 0) if len(shape) == 3 and shape[1] - n in places), None)


@contextmanager
def _quietly() -> Iterator[None]:
    """Neither transformers nor the hub's client says anything meanwhile."""
    try:
        from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
        from transformers.utils import logging as voice
    except ImportError as error:
        raise EncoderError("hf: encoders need transformers; pip install 'repeat-xai[hf]'") from error
    loggers = [logging.getLogger(library) for library in ("transformers", "huggingface_hub")]
    with LOADING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        levels = [logger.level for logger in loggers]
        bars, no_downloads = voice.is_progress_bar_enabled(), are_progress_bars_disabled()
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        voice.disable_progress_bar()
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
            if bars:
                voice.enable_progress_bar()
            (disable_progress_bars if no_downloads else enable_progress_bars)()
