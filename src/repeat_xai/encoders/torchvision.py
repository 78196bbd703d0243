"""Networks of torchvision as encoders (`torchvision:NAME`): the last feature map or the tokens, with a pooling.

The defaults are the paper's: ResNet's adaptive pool, ViT's class token, and AlexNet's features → average pool →
flatten.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import final

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models import WeightsEnum
from torchvision.models.feature_extraction import create_feature_extractor

from repeat_xai.encoders.pooling import POOLS, PooledNetwork
from repeat_xai.encoders.torch_encoder import TorchEncoder, sized
from repeat_xai.encoders.weights import describe_weights, load_weights, read_weights
from repeat_xai.errors import ConfigurationError, EncoderError, choose, reason
from repeat_xai.types import Preprocessing

FEATURES = {
    "alexnet": "avgpool",
    "convnext": "features",
    "densenet": "relu",
    "efficientnet": "features",
    "googlenet": "inception5b",
    "inception": "Mixed_7c",
    "maxvit": "blocks.3",
    "mnasnet": "layers",
    "mobilenet": "features",
    "regnet": "trunk_output",
    "resnet": "layer4",
    "resnext": "layer4",
    "shufflenet": "conv5",
    "squeezenet": "features",
    "swin": "permute",
    "vgg": "avgpool",
    "vit": "encoder",
    "wide_resnet": "layer4",
}
"""For each family the name of the last step before pooling and classifier."""
DEFAULT_POOLS = {"alexnet": "flatten", "vgg": "flatten", "vit": "cls"}
"""For each family its pooling, where that is not the average."""


def names() -> list[str]:
    """Return the name of every classification backbone that torchvision can build."""
    return list(torchvision.models.list_models(module=torchvision.models))


def load(
    name: str, *, weights: str | Path | None, pool: str | None, size: int | None, preprocessing: Preprocessing | None
) -> TorchEncoder:
    """Return the network without its classifier: by default with torchvision's best weights, or with those named."""
    family = next(f for f in sorted(FEATURES, key=len, reverse=True) if name.startswith(f))
    pool = pool or DEFAULT_POOLS.get(family, "avg")
    choose("pool", pool, POOLS)
    published = torchvision.models.get_model_weights(name)
    chosen = published.DEFAULT if weights is None else published.__members__.get(str(weights))
    own = _own_preprocessing(chosen or published.DEFAULT)
    options: dict[str, int] = {}
    other_size = size is not None or preprocessing is not None
    preprocessing = preprocessing or (sized(own, size) if size else own)
    if family == "vit" and other_size:
        options["image_size"] = _side(name, preprocessing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = _network(name, options, weights=chosen).eval()
        body = _TorchvisionFeatures(create_feature_extractor(network, {FEATURES[family]: "features"}))
    if isinstance(weights, Path) and not chosen:
        load_weights(body.graph, read_weights(weights), allowed=network.state_dict(), origin=str(weights))
    return TorchEncoder(
        name=f"torchvision:{name}",
        weights=str(chosen) if chosen else describe_weights(weights),
        pool=pool,
        preprocessing=preprocessing,
        module=PooledNetwork(body, pool, prefix_tokens=int(family == "vit")),
    )


@final
class _TorchvisionFeatures(nn.Module):
    """Images → features: the traced network, whose output is a dictionary of one entry."""

    def __init__(self, graph: nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.graph(images)["features"]
        return features


def _side(name: str, preprocessing: Preprocessing) -> int:
    """Return the side of the square images that a vision transformer is built for."""
    height, width = preprocessing.size
    if height != width:
        raise ConfigurationError(f"torchvision:{name} takes square images, not {height}×{width}; give another size")
    return height


def _network(name: str, options: dict[str, int], *, weights: WeightsEnum | None) -> nn.Module:
    """Return the whole network, initialised from a seed of its own or filled with published weights."""
    try:
        # torchvision announces a download on standard output, where a command may write its result
        with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()):
            torch.default_generator.manual_seed(0)
            network: nn.Module = torchvision.models.get_model(name, weights=weights, progress=False, **options)
            return network
    except (ValueError, AssertionError) as error:
        raise EncoderError(f"torchvision:{name} cannot be built: {reason(error)}") from error
    except (OSError, RuntimeError) as error:
        raise EncoderError(
            f"torchvision:{name}: its weights cannot be downloaded ({reason(error)}); "
            "give a local file of weights, or go online once"
        ) from error


def _own_preprocessing(weights: WeightsEnum) -> Preprocessing:
    """Return the preprocessing that published weights were evaluated with."""
    transforms = weights.transforms()
    return Preprocessing(
        size=(transforms.crop_size[0], transforms.crop_size[0]),
        resize=transforms.resize_size[0],
        interpolation=transforms.interpolation.value,
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
    )
