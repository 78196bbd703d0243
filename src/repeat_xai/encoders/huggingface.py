"""Vision models of Hugging Face's transformers as encoders: by name (`hf:NAME_OR_FOLDER`), or as objects.

Of CLIP and SigLIP only the vision tower is used, unless their projections of images and texts are asked for. ViT-MAE is
shown every patch, in order.
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
from repeat_xai.encoders.hub import quietly
from repeat_xai.encoders.huggingface_files import (
    expect_own_files,
    local_source_of,
    open_tokeniser,
    source_of,
    why_hub_unreachable,
)
from repeat_xai.encoders.huggingface_model import MODEL_POOLS, PROJECTION, pooled_model
from repeat_xai.encoders.huggingface_towers import TWO_TOWERS, projected_model, text_tower
from repeat_xai.encoders.torch_encoder import IMAGENET, TorchEncoder, imagenet, on_device
from repeat_xai.encoders.weights import describe_weights
from repeat_xai.errors import ConfigurationError, EncoderError, choose, reason
from repeat_xai.types import Preprocessing

VISION_TOWERS = ("clip", "siglip")
"""Types of models of images and texts whose vision tower is a model of its own."""


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
        config, source = _config(name, projected=pool == PROJECTION)
        preprocessing = preprocessing or _own_preprocessing(name, source, size)
        network, lacks_head = _network(name, config, source, trained=weights is None)
        texts, module = None, network
        if pool == PROJECTION:
            texts = text_tower(f"hf:{name}", network, lambda: open_tokeniser(source))
            module = projected_model(f"hf:{name}", network, preprocessing, own_size=own_size)
        else:
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
        encode_text=texts,
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
    if not _has_two_towers(module) and not _takes_images(_vision_part(module).config):
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
    _expect_towers(label, model.config, two=_has_two_towers(model), projected=pool == PROJECTION)
    network: Any = on_device(model if pool == PROJECTION else _vision_part(model), device)
    if network.config.model_type == "vit_mae":
        network = _seeing_every_patch(network)
    own_size = size is None and preprocessing is None
    texts = None
    with quietly():
        preprocessing = preprocessing or _local_preprocessing(model, size)
        if pool == PROJECTION:
            texts = text_tower(label, network, lambda: open_tokeniser(local_source_of(model)))
            module = projected_model(label, network, preprocessing, own_size=own_size)
        else:
            pool, module = pooled_model(label, network, preprocessing, pool, own_size=own_size)
    return TorchEncoder(
        name=name or label,
        weights="as given",
        pool=pool,
        preprocessing=preprocessing,
        module=module,
        encode_text=texts,
    )


def _takes_images(config: Any) -> bool:
    """Return whether the model of a configuration is given images, and not texts or sounds."""
    import transformers

    kind = transformers.MODEL_MAPPING.get(type(config), None)
    return getattr(kind, "main_input_name", None) == "pixel_values"


def _has_two_towers(model: Any) -> bool:
    """Return whether a model has a tower for images and one for texts, and projects both into one space."""
    return model.config.model_type in TWO_TOWERS and hasattr(model, "get_text_features")


def _expect_towers(label: str, config: Any, *, two: bool, projected: bool) -> None:
    """Raise a ConfigurationError unless a model can be pooled so: `two` says that it has two towers."""
    if projected and not two:
        raise ConfigurationError(f"{label} does not project images and texts into one space; choose another pool")
    if two and not projected and config.model_type not in VISION_TOWERS:
        raise ConfigurationError(
            f"{label} is a model of images and texts '{config.model_type}'; choose pool projection"
        )


def _vision_part(model: Any) -> Any:
    """Return the part of a model that turns images into features: without text tower, classifier or decoder."""
    return model.vision_model if model.config.model_type in VISION_TOWERS else model.base_model


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


def _local_preprocessing(model: Any, size: int | None) -> Preprocessing:
    """Return the preprocessing of the image processor saved where the model was loaded from, or else ImageNet's."""
    try:
        processor = image_processor.open_processor(local_source_of(model))
    except Exception:  # transformers fails with errors of every kind
        processor = None
    if processor is not None:
        return image_processor.as_preprocessing(type(model).__name__, processor, size)
    sides = size or getattr(_vision_config(model.config), "image_size", None) or IMAGENET.size
    return imagenet(*((sides, sides) if isinstance(sides, int) else sides))


def _vision_config(config: Any) -> Any:
    """Return the part of a configuration that describes how images are encoded."""
    return config.vision_config if config.model_type in TWO_TOWERS else config


def _config(name: str, *, projected: bool) -> tuple[Any, dict[str, Any]]:
    """Return a model's configuration, and the arguments by which transformers finds the rest of it.

    A model of the hub is found at one commit, so that all of its files belong together. Of a model of images and texts
    it is the configuration of the vision tower, unless the model is to be `projected`.
    """
    import huggingface_hub
    import transformers

    in_folder = Path(name).is_dir()
    offline = "" if in_folder else why_hub_unreachable(name)
    source = source_of(name, local=in_folder or bool(offline))
    try:
        if in_folder:
            expect_own_files(Path(name))
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
    two = config.model_type in TWO_TOWERS
    if two or projected:
        _expect_towers(f"hf:{name}", config, two=two, projected=projected)
    if projected:
        return config, source
    if two:
        config = config.vision_config
    if not _takes_images(config):
        raise EncoderError(
            f"hf:{name} is a model '{config.model_type}', which is no vision model that can be explained"
        )
    if config.model_type == "vit_mae":
        config.mask_ratio = 0.0
    return config, source


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
