"""`timm:NAME` → encoder: the class token, the average pool, or the network's own head without its classifier."""

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

from repeat_xai.encoders.torch_encoder import POOLS, Pooled, TorchEncoder
from repeat_xai.encoders.weights import described, fit, read_weights
from repeat_xai.errors import ConfigurationError, EncoderError, reason
from repeat_xai.types import Preprocessing


def names() -> list[str]:
    """Every architecture timm can build."""
    return list(timm.list_models())


def load(name: str, *, weights: str | Path | None, pool: str | None, size: int | None) -> TorchEncoder:
    """Build the network without its classifier and fill it: by default with timm's own weights."""
    network = build(name, size=size, pretrained=weights is None)
    if isinstance(weights, Path):
        fill(network, read_weights(weights), origin=str(weights))
    return TorchEncoder(
        name=f"timm:{name}",
        weights=described(weights, default=_tag(network)),
        pool=pool or default_pool(network),
        preprocessing=preprocessing_of(network, size=size),
        module=pooled(network, pool or default_pool(network)),
    )


def build(name: str, *, size: int | None, pretrained: bool) -> nn.Module:
    """The network with no classifier; a transformer is told the size it will see."""
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            try:
                options = {"img_size": size} if size else {}
                network: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=0, **options)
            except TypeError:  # a network without a table of positions takes every size, and no such option
                network = timm.create_model(name, pretrained=pretrained, num_classes=0)
            return network.eval()
    except Exception as error:  # the hub's client fails with errors of every kind
        if not pretrained:
            raise EncoderError(f"timm:{name} cannot be built: {reason(error)}") from error
        raise EncoderError(
            f"timm:{name}: its default weights could not be had ({reason(error)}); "
            "give a local file of weights, or go online once"
        ) from error


def fill(network: nn.Module, weights: dict[str, Tensor], *, origin: str) -> None:
    """Load weights strictly but for the classifier, after timm's own adaptation to the network's input size."""
    adapt = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    if adapt is not None:
        wanted = inspect.signature(adapt).parameters
        try:
            weights = dict(adapt(weights, network) if len(wanted) > 1 else adapt(weights))
        except Exception as error:  # it takes for granted that the weights are the network's
            raise EncoderError(f"{origin}: the weights do not fit the encoder ({reason(error)})") from error
    classifiers = network.pretrained_cfg["classifier"]  # type: ignore[index]
    prefixes = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers or ())
    classifier = {k for k in weights if k.startswith(tuple(f"{p}." for p in prefixes))}
    fit(network, weights, allowed=classifier, origin=origin)


def default_pool(network: nn.Module) -> str:
    """The name of what the network itself does before its classifier."""
    own = getattr(network, "global_pool", None)
    if type(network) is VisionTransformer and own == "token":
        return "cls"
    plain = isinstance(own, SelectAdaptivePool2d) and own.pool_type == "avg"
    if plain and network.num_features == getattr(network, "head_hidden_size", None):
        return "avg"
    return "head"


def pooled(network: nn.Module, pool: str) -> nn.Module:
    """Images → codes by the pool of that name; `head` is the network's own."""
    if pool == "head":
        return network
    if pool not in POOLS:
        raise ConfigurationError(f"unknown pool '{pool}'; choose one of: head, {', '.join(POOLS)}")
    return Pooled(_Features(network), pool, prefix_tokens=getattr(network, "num_prefix_tokens", 0))


def preprocessing_of(network: nn.Module, *, size: int | None) -> Preprocessing:
    """The preprocessing the network's own configuration names, at another size if asked."""
    how = timm.data.resolve_data_config({}, model=network)
    height, width = (size, size) if size else how["input_size"][1:]
    resize = (math.floor(height / how["crop_pct"]), math.floor(width / how["crop_pct"]))
    if how["crop_mode"] not in ("center", "squash"):
        raise EncoderError(f"crop mode '{how['crop_mode']}' is not supported; give the network as a module")
    return Preprocessing(
        size=(height, width),
        resize=min(resize) if how["crop_mode"] == "center" else resize,
        interpolation=how["interpolation"],
        mean=tuple(how["mean"]),
        std=tuple(how["std"]),
    )


def _tag(network: nn.Module) -> str:
    """Which of timm's weights the default is."""
    config = network.pretrained_cfg
    return f"timm {config['architecture']}.{config['tag']}"  # type: ignore[index]


@final
class _Features(nn.Module):
    """The network up to its pooling, channels first."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.network.forward_features(images)  # type: ignore[operator]
        last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"
        return features.permute(0, 3, 1, 2) if last else features
