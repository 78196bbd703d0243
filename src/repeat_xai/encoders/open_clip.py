"""Models of open_clip as encoders (`open_clip:NAME`): the code of an image is its projection into the space of texts.

Both towers are run by the model's own `encode_image` and `encode_text`, and texts go through its own tokeniser.
"""

from __future__ import annotations

import copy
import importlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.hub import is_downloaded, quietly, why_unreachable
from repeat_xai.encoders.huggingface_model import PROJECTION
from repeat_xai.encoders.text_tower import TextTower, Tokenise
from repeat_xai.encoders.torch_encoder import TorchEncoder, sized
from repeat_xai.encoders.weights import describe_weights, load_weights, read_weights
from repeat_xai.errors import MAX_LISTED_NAMES, ConfigurationError, EncoderError, choose, reason
from repeat_xai.types import Preprocessing

SIMILARITY_PARTS = ("logit_scale", "logit_bias")
"""Tensors that scale similarities; codes do not depend on them."""
TEXT_DECODER = "text_decoder"
"""The part of CoCa that writes captions; codes do not depend on it."""
PREPROCESSING_FIELDS = ("mean", "std", "interpolation", "resize_mode")


def names() -> list[str]:
    """Return the name of every model that open_clip can build, or none if it is not installed."""
    try:
        return list(_library().list_models())
    except EncoderError:
        return []


def expect_installed() -> None:
    """Raise an EncoderError that says what to install if open_clip is not."""
    _library()


def load(
    name: str, *, weights: str | Path | None, pool: str | None, size: int | None, preprocessing: Preprocessing | None
) -> TorchEncoder:
    """Return the model of that name with the weights of a tag of open_clip's or of a file, or untrained."""
    choose("pool", pool or PROJECTION, (PROJECTION,))
    label = f"open_clip:{name}"
    file = weights if isinstance(weights, Path) and weights.is_file() else None
    tag = None if file or weights == "random" else _tag(name, weights)
    with quietly(), _root_logger_silenced():
        image_size = preprocessing.size if preprocessing else (size, size) if size else None
        network = _network(name, tag, image_size)
        if file:
            _load_checkpoint(network, read_weights(file), origin=str(file))
        tokenise = _tokeniser(name)
    own = preprocessing or _own_preprocessing(label, network, size)
    return TorchEncoder(
        name=label,
        weights=describe_weights(file or weights if tag is None else None, default=f"open_clip {tag}"),
        pool=PROJECTION,
        preprocessing=own,
        module=_ProjectedImages(network),
        encode_text=TextTower(name=label, module=_ProjectedTexts(network), tokenise=tokenise),
    )


def _library() -> Any:
    """Return the module of open_clip, or raise an EncoderError that says what to install."""
    try:
        return importlib.import_module("open_clip")
    except ImportError as error:
        raise EncoderError("open_clip: encoders need open_clip; pip install 'repeat-xai[clip]'") from error


def _tag(name: str, weights: str | Path | None) -> str:
    """Return the tag of published weights that is meant; a model with several sets of weights has no default."""
    tags = _library().list_pretrained_tags_by_model(name)
    if weights is None and len(tags) == 1:
        return str(tags[0])
    if weights is not None and _library().is_pretrained_cfg(name, str(weights)):
        return str(weights)
    problem = "needs weights" if weights is None else f"has no weights '{weights}', and there is no such file"
    listed = ", ".join(tags[:MAX_LISTED_NAMES]) + (", …" if len(tags) > MAX_LISTED_NAMES else "")
    published = f" or one of: {listed}" if tags else ", since none are published"
    raise ConfigurationError(f"open_clip:{name} {problem}; give a file of weights{published}")


def _network(name: str, tag: str | None, image_size: tuple[int, int] | None) -> Any:
    """Return the model with the weights of a tag, or else initialised from a seed of its own."""
    library = _library()
    published = library.get_pretrained_cfg(name, tag) if tag else {}
    options: dict[str, Any] = {"force_preprocess_cfg": _shared_preprocessing(name)} if tag is None else {}
    if image_size:
        options["force_image_size"] = image_size
    try:
        if tag:
            _expect_weights(published)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            return library.create_model(
                name,
                pretrained=tag,
                pretrained_text=False,
                force_quick_gelu=published.get("quick_gelu", False),  # open_clip only warns of the wrong activation
                **options,
            ).eval()
    except Exception as error:  # the hub's client and open_clip fail with errors of every kind
        if tag is None:
            raise EncoderError(f"open_clip:{name} cannot be built: {reason(error)}") from error
        raise EncoderError(
            f"open_clip:{name}: its weights '{tag}' cannot be loaded ({reason(error)}); "
            "give a local file of weights, or go online once"
        ) from error


def _expect_weights(published: Mapping[str, Any]) -> None:
    """Raise a ConnectionError if weights of the hub are neither on this machine nor to be downloaded."""
    model = published.get("hf_hub", "").rpartition("/")[0]  # what follows is the name of a file, or nothing
    if model and (why := why_unreachable(model)) and not is_downloaded(model, None):
        raise ConnectionError(why)


def _shared_preprocessing(name: str) -> dict[str, Any]:
    """Return the preprocessing that all published weights of a model share: files of weights do not name theirs."""
    library = _library()
    published = [library.get_pretrained_cfg(name, tag) for tag in library.list_pretrained_tags_by_model(name)]
    described = [{field: one.get(field) for field in PREPROCESSING_FIELDS} for one in published]
    return described[0] if described and all(one == described[0] for one in described) else {}


def _load_checkpoint(network: Any, tensors: dict[str, Tensor], *, origin: str) -> None:
    """Load weights strictly, after open_clip's own adaptation to the model's form and to its size of images."""
    library = _library()
    try:
        tensors = library.convert.convert_state_dict(network, tensors)
        if "positional_embedding" in tensors and not hasattr(network, "positional_embedding"):
            tensors = library.model.convert_to_custom_text_state_dict(tensors)
        library.model.resize_pos_embed(tensors, network)
    except Exception as error:  # they take for granted that the weights are the model's
        raise EncoderError(f"{origin}: the weights do not fit the encoder ({reason(error)})") from error
    own = {name: tensor for name, tensor in network.state_dict().items() if name in SIMILARITY_PARTS}
    position_ids = {name for name in tensors if name.endswith("position_ids")}  # of older transformers
    load_weights(network, tensors | own, allowed={*SIMILARITY_PARTS, *position_ids}, origin=origin)


def _own_preprocessing(label: str, network: Any, size: int | None) -> Preprocessing:
    """Return the preprocessing that the model's configuration names, at another size if given."""
    config = _library().get_model_preprocess_cfg(network)
    height, width = (config["size"],) * 2 if isinstance(config["size"], int) else config["size"]
    squashed = config["resize_mode"] == "squash"
    if config["resize_mode"] == "longest" or not (squashed or height == width):
        raise EncoderError(f"{label} resizes photos in a way that is not known here; in Python, give a preprocessing")
    preprocessing = Preprocessing(
        size=(height, width),
        resize=(height, width) if squashed else height,
        interpolation="bilinear" if config["interpolation"] == "bilinear" else "bicubic",  # as open_clip takes others
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )
    return sized(preprocessing, size) if size else preprocessing


def _tokeniser(name: str) -> Tokenise | str:
    """Return the model's own tokeniser, or the line that says why there is none."""
    library = _library()
    hub_name = library.get_model_config(name)["text_cfg"].get("hf_tokenizer_name", "")
    options = {}
    try:
        if hub_name and not Path(hub_name).is_dir() and (why := why_unreachable(hub_name)):
            if not is_downloaded(hub_name, None):
                raise ConnectionError(why)
            options["local_files_only"] = True
        return _Tokeniser(library.get_tokenizer(name, **options))
    except Exception as error:  # the hub's client and transformers fail with errors of every kind
        return (
            f"open_clip:{name}: its tokeniser {hub_name} cannot be loaded, so it takes no texts ({reason(error)}); "
            "go online once"
        )


@final
class _Tokeniser:
    """A text → its tokens, cut and padded by open_clip."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __call__(self, text: str) -> Mapping[str, Tensor]:
        return {"text": self.tokenizer([text])}


@final
class _ProjectedImages(nn.Module):
    """Images → their projections."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower: Any = copy.copy(model)  # shares its tensors, and has no text tower
        self.tower._modules = {"visual": model.visual}
        self.tower._parameters = {}

    def forward(self, images: Tensor) -> Tensor:
        codes: Tensor = self.tower.encode_image(images)
        return codes


@final
class _ProjectedTexts(nn.Module):
    """Tokens → the projections of texts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower: Any = copy.copy(model)
        others = ("visual", TEXT_DECODER)
        self.tower._modules = {name: part for name, part in model._modules.items() if name not in others}

    def forward(self, text: Tensor) -> Tensor:
        codes: Tensor = self.tower.encode_text(text)
        return codes


@contextmanager
def _root_logger_silenced() -> Iterator[None]:
    """Keep open_clip from writing log lines, and from configuring the root logger, to which it writes them."""
    root, silent = logging.getLogger(), logging.NullHandler()
    level = root.level
    root.addHandler(silent)
    root.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(silent)
