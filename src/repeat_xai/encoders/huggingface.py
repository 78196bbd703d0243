"""Vision models of Hugging Face's transformers as encoders: by name (`hf:NAME_OR_FOLDER`), or as objects.

Of CLIP and SigLIP only the vision tower is used. ViT-MAE is shown every patch, in order.
"""

from __future__ import annotations

import copy
import importlib
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn

from repeat_xai.encoders import huggingface_preprocessing as image_processor
from repeat_xai.encoders.hub import quietly, why_unreachable
from repeat_xai.encoders.huggingface_model import MODEL_POOLS, pooled_model
from repeat_xai.encoders.torch_encoder import IMAGENET, TorchEncoder, imagenet, on_device
from repeat_xai.encoders.weights import describe_weights
from repeat_xai.errors import ConfigurationError, EncoderError, choose, reason
from repeat_xai.files.reading import read_json
from repeat_xai.types import Preprocessing

TWO_TOWERS = ("clip", "siglip")
"""Types of models of images and text."""
MAX_JSON_BYTES = 2**26
"""Size of a configuration: names of classes and of tensors fill some millions of bytes."""


def load(
    name: str, *, weights: str | Path | None, pool: str | None, size: int | None, preprocessing: Preprocessing | None
) -> TorchEncoder:
    """Return the model of that name on the hub or in that folder, with its own weights or untrained."""
    choose("pool", pool or "head", MODEL_POOLS)
    if isinstance(weights, Path):
        raise ConfigurationError("an hf: model has its own weights; to load others, give their folder as hf:FOLDER")
    _expect_transformers()
    own_size = size is None and preprocessing is None
    with quietly():
        config, source = _config(name)
        preprocessing = preprocessing or _own_preprocessing(name, source, size)
        network, lacks_head = _network(name, config, source, trained=weights is None)
        pool, module = pooled_model(
            f"hf:{name}", network, preprocessing, pool, own_size=own_size, lacks_head=lacks_head
        )
    folder = Path(name) if Path(name).is_dir() else None
    return TorchEncoder(
        name=f"hf:{folder.resolve().name if folder else name}",
        weights=describe_weights(weights or folder, default=f"{name} at commit {source.get('revision')}"),
        pool=pool,
        preprocessing=preprocessing,
        module=module,
    )


def is_vision_model(module: nn.Module) -> bool:
    """Return whether a module is a model of transformers that takes images; raise an EncoderError if it takes others.

    A class of the user's own that derives from transformers' is no such model: it may return what it likes.
    """
    if sys.modules.get("transformers.modeling_utils") is None:  # where it is not imported, no module is a model of it
        return False
    import transformers

    if not isinstance(module, transformers.PreTrainedModel) or not type(module).__module__.startswith("transformers."):
        return False
    if not _takes_images(_vision_part(module).config):
        raise EncoderError(f"{type(module).__name__} is no vision model that can be explained")
    return True


def from_model(
    model: Any,
    *,
    name: str | None,
    pool: str | None,
    size: int | None,
    preprocessing: Preprocessing | None,
    device: torch.device | None,
) -> TorchEncoder:
    """Return an encoder that runs a model object of transformers, or a copy of it where another device is asked for.

    Without a preprocessing it is that of the image processor with which the model is saved on this machine, if there is
    one, else ImageNet's at the size of the model's images.
    """
    choose("pool", pool or "head", MODEL_POOLS)
    label = type(model).__name__
    network: Any = on_device(_vision_part(model), device)
    if network.config.model_type == "vit_mae":
        network = _seeing_every_patch(network)
    own_size = size is None and preprocessing is None
    with quietly():
        preprocessing = preprocessing or _local_preprocessing(model, network, size)
        pool, module = pooled_model(label, network, preprocessing, pool, own_size=own_size)
    return TorchEncoder(name=name or label, weights="as given", pool=pool, preprocessing=preprocessing, module=module)


def _takes_images(config: Any) -> bool:
    """Return whether the model of a configuration is given images, and not texts or sounds."""
    import transformers

    kind = transformers.MODEL_MAPPING.get(type(config), None)
    return getattr(kind, "main_input_name", None) == "pixel_values"


def _vision_part(model: Any) -> Any:
    """Return the part of a model that turns images into features: without text tower, classifier or decoder."""
    return model.vision_model if model.config.model_type in TWO_TOWERS else model.base_model


def _seeing_every_patch(network: Any) -> Any:
    """Return a ViT-MAE that leaves out no patch; it shares its tensors with the one that is given."""
    tensors = chain(network.parameters(), network.buffers())
    network = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
    network.config.mask_ratio = 0.0
    return network


def _own_preprocessing(name: str, source: dict[str, Any], size: int | None) -> Preprocessing:
    """Return the preprocessing of the image processor that is saved beside the model, at another size if given."""
    try:
        processor = image_processor.open_processor(source)
    except Exception as error:  # transformers meets what it cannot read with errors of every kind
        raise EncoderError(
            f"hf:{name}: has no image processor that can be read, so its preprocessing is unknown ({reason(error)}); "
            "save one beside the model, or in Python give a preprocessing"
        ) from error
    return image_processor.as_preprocessing(f"hf:{name}", processor, size)


def _local_preprocessing(model: Any, network: Any, size: int | None) -> Preprocessing:
    """Return the preprocessing of the image processor saved where the model was loaded from, or else ImageNet's."""
    origin = model.name_or_path
    try:
        if Path(origin).is_dir():
            _expect_own_files(Path(origin))
        processor = image_processor.open_processor(_source(origin, local=True)) if origin else None
    except Exception:  # transformers fails with errors of every kind
        processor = None
    if processor is not None:
        return image_processor.as_preprocessing(type(model).__name__, processor, size)
    sides = size or getattr(network.config, "image_size", None) or IMAGENET.size
    return imagenet(*((sides, sides) if isinstance(sides, int) else sides))


def _source(name: str, *, local: bool) -> dict[str, Any]:
    """Return the arguments by which transformers finds a model, without running code that comes with it."""
    return {"pretrained_model_name_or_path": name, "trust_remote_code": False, "local_files_only": local}


def _config(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a model's configuration, and the arguments by which transformers finds the rest of it.

    A model of the hub is found at one commit, so that all of its files belong together.
    """
    import huggingface_hub
    import transformers

    in_folder = Path(name).is_dir()
    offline = "" if in_folder else _why_unreachable(name)
    source = _source(name, local=in_folder or bool(offline))
    try:
        if in_folder:
            _expect_own_files(Path(name))
        else:
            file = huggingface_hub.hf_hub_download(name, "config.json", local_files_only=bool(offline))
            source["revision"] = Path(file).parent.name
        config = transformers.AutoConfig.from_pretrained(**source)
    except Exception as error:  # transformers fails with errors of every kind
        if offline:
            raise EncoderError(
                f"hf:{name}: no such folder, and the hub cannot be asked ({offline}); give a folder, or go online once"
            ) from error
        raise EncoderError(f"hf:{name}: cannot be read as a model of transformers ({reason(error)})") from error
    if config.model_type in TWO_TOWERS:
        config = config.vision_config
    if not _takes_images(config):
        raise EncoderError(
            f"hf:{name} is a model '{config.model_type}', which is no vision model that can be explained"
        )
    if config.model_type == "vit_mae":
        config.mask_ratio = 0.0
    return config, source


def _expect_own_files(folder: Path) -> None:
    """Raise a ValueError unless all that transformers may open is regular files in the folder, and its JSON is sound.

    A folder of the hub's cache holds links to files beside it.
    """
    home = folder.resolve()
    homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
    names = [entry.name for entry in home.iterdir()] if (home / "config.json").exists() else []
    for path in (*home.glob("*config.json"), *home.glob("*.index.json")):
        content = read_json(path, max_bytes=MAX_JSON_BYTES)
        weight_map = content.get("weight_map", {})
        names += weight_map.values() if isinstance(weight_map, dict) else ()
        names += (content["transformers_weights"],) if content.get("transformers_weights") else ()
    for name in set(map(str, names)):
        target = (home / name).resolve()
        if not any(target.is_relative_to(own) for own in homes):
            raise ValueError(f"{name[:100]!r} leads out of the folder")
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise ValueError(f"{name[:100]!r} is not a regular file")


def _why_unreachable(name: str) -> str:
    """Return why the hub cannot be asked, or an empty text; raise an EncoderError if it does not have the model."""
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        return why_unreachable(name)
    except HFValidationError as error:
        raise EncoderError(f"hf:{name}: no such folder, and not the name of a model on the hub") from error
    except RepositoryNotFoundError as error:
        raise EncoderError(
            f"hf:{name}: no such folder, and no such model on the hub, or one that needs a login"
        ) from error


def _network(name: str, config: Any, source: dict[str, Any], *, trained: bool) -> tuple[nn.Module, bool]:
    """Return the model in float32, and whether its checkpoint lacks weights of its pooling; it may lack no others."""
    import transformers

    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            if not trained:
                return transformers.AutoModel.from_config(config, trust_remote_code=False).float().eval(), False
            network, loading = transformers.AutoModel.from_pretrained(
                **source, config=config, output_loading_info=True, ignore_mismatched_sizes=True
            )
    except Exception as error:  # transformers fails with errors of every kind
        raise EncoderError(f"hf:{name}: the model cannot be loaded ({reason(error)})") from error
    absent = sorted(k for k in loading["missing_keys"] if not k.endswith("num_batches_tracked"))
    missing = [k for k in absent if not k.startswith("pooler.")]
    misshapen = sorted(str(k[0]) for k in loading["mismatched_keys"])
    for problem, keys in (("missing", missing), ("of another shape", misshapen)):
        if keys:
            raise EncoderError(
                f"hf:{name}: the weights do not fit the model: {len(keys)} tensors {problem}, first '{keys[0]}'"
            )
    return network.float().eval(), bool(absent)


def _expect_transformers() -> None:
    """Raise an EncoderError that says what to install if transformers is not."""
    try:
        importlib.import_module("transformers")
    except ImportError as error:
        raise EncoderError("hf: encoders need transformers; pip install 'repeat-xai[hf]'") from error
