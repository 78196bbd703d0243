"""`torchvision:NAME` → encoder: the last feature map or the tokens, pooled as the paper does.

The paper takes ResNet's adaptive pool and ViT's class token; its AlexNet is features → average pool → flatten.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import final

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models import WeightsEnum
from torchvision.models.feature_extraction import create_feature_extractor

from repeat_xai.encoders.torch_encoder import Pooled, TorchEncoder, sized
from repeat_xai.encoders.weights import described, fit, read_weights
from repeat_xai.errors import EncoderError, reason
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
"""Family → the last step before pooling and head."""
POOL = {"alexnet": "flatten", "vgg": "flatten", "vit": "cls"}
"""Family → pooling, where it is not the average."""


def names() -> list[str]:
    """Every classification backbone torchvision can build."""
    return list(torchvision.models.list_models(module=torchvision.models))


def load(name: str, *, weights: str | Path | None, pool: str | None, size: int | None) -> TorchEncoder:
    """Build the network, cut off its head and fill it: by default with torchvision's best weights, or those named."""
    family = next(f for f in sorted(FEATURES, key=len, reverse=True) if name.startswith(f))
    pool = pool or POOL.get(family, "avg")
    options = {"image_size": size} if family == "vit" and size else {}
    published = torchvision.models.get_model_weights(name)
    chosen = published.DEFAULT if weights is None else published.__members__.get(str(weights))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = _network(name, options, weights=chosen).eval()
        body = _Features(create_feature_extractor(network, {FEATURES[family]: "features"}))
    if isinstance(weights, Path) and not chosen:
        fit(body.graph, read_weights(weights), allowed=network.state_dict(), origin=str(weights))
    preprocessing = _preprocessing(chosen or published.DEFAULT)
    return TorchEncoder(
        name=f"torchvision:{name}",
        weights=str(chosen) if chosen else described(weights),
        pool=pool,
        preprocessing=preprocessing if size is None else sized(preprocessing, size),
        module=Pooled(body, pool, prefix_tokens=int(family == "vit")),
    )


@final
class _Features(nn.Module):
    """The traced network, its one output taken out of its dictionary."""

    def __init__(self, graph: nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.graph(images)["features"]
        return features


def _network(name: str, options: dict[str, int], *, weights: WeightsEnum | None) -> nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            network: nn.Module = torchvision.models.get_model(name, weights=weights, **options)
            return network
    except (ValueError, AssertionError) as error:
        raise EncoderError(f"torchvision:{name} cannot be built: {reason(error)}") from error
    except (OSError, RuntimeError) as error:
        raise EncoderError(
            f"torchvision:{name}: its weights could not be had ({reason(error)}); "
            "give a local file of weights, or go online once"
        ) from error


def _preprocessing(weights: WeightsEnum) -> Preprocessing:
    how = weights.transforms()
    return Preprocessing(
        size=(how.crop_size[0], how.crop_size[0]),
        resize=how.resize_size[0],
        interpolation=how.interpolation.value,
        mean=tuple(how.mean),
        std=tuple(how.std),
    )
