"""A vision model of Hugging Face's transformers as a network that returns one tensor: features or codes.

The models differ in what comes before the tokens of places (class tokens, registers), in whether they have a pooling of
their own, and in how they take images of another size. All of it is read off the model and one made-up image.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import ceil, floor
from typing import Any, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.pooling import POOLS, PooledNetwork, pool_features
from repeat_xai.encoders.torch_encoder import evaluating
from repeat_xai.errors import ConfigurationError, EncoderError, reason
from repeat_xai.types import Preprocessing

HEAD_POOLED = ("clip_vision_model", "siglip_vision_model")
"""Types of models that were trained for the output of their own pooling."""
PREFIX_TOKENS = ("cls_token", "class_embedding", "distillation_token", "register_tokens")
"""Names of the parameters from which tokens begin that stand for no place; they come before those that do."""
PROJECTION = "projection"
"""The pooling of models of images and texts that projects an image into the space of both."""
MODEL_POOLS = ("head", PROJECTION, *POOLS)
"""Every pooling of a model of transformers; `head` is its own."""


def pooled_model(
    label: str,
    network: nn.Module,
    preprocessing: Preprocessing,
    pool: str | None,
    *,
    own_size: bool,
    lacks_head: bool = False,
) -> tuple[str, nn.Module]:
    """Return the name of the pooling, the model's default if none is given, and the network that ends with it.

    `label` names the model in errors. `own_size` says that the size of images is the model's own, and not one that the
    caller chose. `lacks_head` says that the checkpoint has no weights for the model's pooling.
    """
    features = _TransformersFeatures(network)
    output = try_image(label, features, features.output, preprocessing, own_size=own_size)
    hidden, head = output.last_hidden_state, output.get("pooler_output")
    prefix = _prefix_tokens(hidden.shape, preprocessing.size, special=_special_tokens(network))
    if pool is None and (prefix is None or (features.config.model_type in HEAD_POOLED and head is not None)):
        pool = "head"
    pool = pool or ("cls" if prefix else "avg")
    if pool == "head" and (head is None or lacks_head):
        raise ConfigurationError(f"{label} has no pooling of its own, or no weights for it; choose another pool")
    if pool in ("avg", "max", "cls") and prefix is None:
        raise ConfigurationError(f"{label} gives {list(hidden.shape)}, not a value a place; choose head or flatten")
    if pool == "head":
        return pool, _TransformersHead(features)
    pool_features(hidden, pool, prefix_tokens=prefix or 0)  # refuses a pooling that does not suit the features
    return pool, PooledNetwork(features, pool, prefix_tokens=prefix or 0)


@final
class _TransformersFeatures(nn.Module):
    """Images → the last hidden state; position embeddings are interpolated for images of another size."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.config: Any = network.config
        self.own_size = own_size_of(self.config)
        self.interpolates = "interpolate_pos_encoding" in inspect.signature(network.forward).parameters

    def output(self, images: Tensor) -> Any:
        """Return the model's whole output."""
        options: dict[str, Any] = {}
        height, width = images.shape[2:]
        if self.interpolates and (height, width) != self.own_size:
            options["interpolate_pos_encoding"] = True
        if self.config.model_type == "vit_mae":  # it sorts patches by this noise, and keeps all at a mask ratio of 0
            patches = (height // self.config.patch_size) * (width // self.config.patch_size)
            options["noise"] = torch.arange(patches, device=images.device).float().expand(len(images), -1)
        output = self.network(pixel_values=images, **options)
        if not isinstance(output.last_hidden_state, Tensor):
            raise TypeError("it gives no last_hidden_state")
        return output

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.output(images).last_hidden_state
        return features


@final
class _TransformersHead(nn.Module):
    """Images → codes by the model's own pooling."""

    def __init__(self, features: _TransformersFeatures) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        codes: Tensor = self.features.output(images).pooler_output
        return codes.flatten(1)


def try_image(
    label: str, network: nn.Module, run: Callable[[Tensor], Any], preprocessing: Preprocessing, *, own_size: bool
) -> Any:
    """Return what `run`, a function of the network, gives for one made-up image; refuse a network that cannot take it.

    `label` names the model in errors. `own_size` says that the size of images is the model's own.
    """
    height, width = preprocessing.size
    weights = next(network.parameters())
    try:
        with torch.no_grad(), evaluating(network):
            images = torch.zeros(1, len(preprocessing.mean), height, width, device=weights.device, dtype=weights.dtype)
            return run(images)
    except Exception as error:  # models meet what they cannot do with errors of every kind
        line = f"{label} takes no images of {height}×{width} ({reason(error)})"
        raise (EncoderError if own_size else ConfigurationError)(line) from error


def own_size_of(config: Any) -> tuple[int, ...]:
    """Return the height and width of images that a configuration names, or nothing if it names none."""
    own = getattr(config, "image_size", None)
    return (own, own) if isinstance(own, int) else tuple(own or ())


def _special_tokens(network: nn.Module) -> int:
    """Return the number of tokens that stand for no place, counted by the parameters they begin from."""
    tokens = [p for name, p in network.named_parameters() if name.rpartition(".")[2] in PREFIX_TOKENS]
    return sum(p.shape[1] if p.ndim == 3 else 1 for p in tokens)


def _prefix_tokens(shape: torch.Size, size: tuple[int, int], *, special: int) -> int | None:
    """Return how many tokens come before those of the places, or None if the features form no grid of places.

    Rows and columns of the grid are the image's sides divided by one step, rounded up or down.
    """
    steps = range(1, min(size) + 1)
    grids = {(to(size[0] / step), to(size[1] / step)) for step in steps for to in (floor, ceil)}
    if len(shape) == 4:
        return 0 if tuple(shape[2:]) in grids else None
    places = {rows * columns for rows, columns in grids}
    return next((n for n in (special, 0) if len(shape) == 3 and shape[1] - n in places), None)
