"""Models of transformers with two towers, one for images and one for texts, that project both into one space.

The towers are taken apart, so that masked copies of an image go through a network that holds no weights of the other
tower. Both are run by the model's own `get_image_features` and `get_text_features`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.huggingface_model import own_size_of, try_image
from repeat_xai.encoders.text_tower import TextTower, Tokenise
from repeat_xai.errors import ConfigurationError, reason
from repeat_xai.types import Preprocessing

TWO_TOWERS = ("clip", "siglip", "chinese_clip", "altclip", "align", "metaclip_2")
"""Types of models of images and texts whose towers can be taken apart.

AIMv2 is not among them: in transformers 5 the code of a text depends on the padding of others beside it.
"""
FULL_LENGTH = ("siglip", "align")
"""Types of models that were trained on texts padded to their full length."""
IMAGE_PARTS = ("vision_model", "visual_projection")
TEXT_PARTS = ("text_model", "text_projection")


def projected_model(label: str, model: Any, preprocessing: Preprocessing, *, own_size: bool) -> nn.Module:
    """Return the network that turns images into their projections; `label` names the model in errors."""
    network = _ProjectedImages(model)
    codes = try_image(label, network, network, preprocessing, own_size=own_size)
    if codes.ndim != 2:
        raise ConfigurationError(f"{label} projects an image to {list(codes.shape)}, not to one code; use another pool")
    return network


def text_tower(label: str, model: Any, open_tokeniser: Callable[[], Any]) -> TextTower:
    """Return the text tower of a model, with its tokeniser or the reason why it has none."""
    tokenise: Tokenise | str
    try:
        tokenise = _Tokeniser(open_tokeniser(), model.config)
    except Exception as error:  # transformers meets what it cannot read with errors of every kind
        tokenise = (
            f"{label}: has no tokeniser that can be read, so it takes no texts ({reason(error)}); "
            "save one beside the model with its save_pretrained, and load the model from there"
        )
    return TextTower(name=label, module=_ProjectedTexts(model), tokenise=tokenise)


@final
class _ProjectedImages(nn.Module):
    """Images → their projections; position embeddings are interpolated for images of another size."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower: Any = _tower(model, IMAGE_PARTS)
        self.own_size = own_size_of(model.config.vision_config)
        self.interpolates = "interpolate_pos_encoding" in inspect.signature(model.get_image_features).parameters

    def forward(self, images: Tensor) -> Tensor:
        options = {"interpolate_pos_encoding": True} if self._must_interpolate(images) else {}
        return _codes(self.tower.get_image_features(pixel_values=images, **options))

    def _must_interpolate(self, images: Tensor) -> bool:
        return self.interpolates and tuple(images.shape[2:]) != self.own_size


@final
class _ProjectedTexts(nn.Module):
    """Tokens → the projections of texts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower: Any = _tower(model, TEXT_PARTS)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        given = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        options = {name: tensor for name, tensor in given.items() if tensor is not None}
        return _codes(self.tower.get_text_features(input_ids=input_ids, **options))


@final
class _Tokeniser:
    """The tokeniser of a model: a text → its tokens, cut and padded as in the model's training."""

    def __init__(self, tokenizer: Any, config: Any) -> None:
        # Without files of a vocabulary, transformers makes a tokeniser that takes every word for an unknown one.
        if len(tokenizer) <= len(set(tokenizer.all_special_ids)) + 1:
            raise ValueError("its tokeniser has no vocabulary")
        self.tokenizer = tokenizer
        self.max_length = min(tokenizer.model_max_length, config.text_config.max_position_embeddings)
        self.padding = "max_length" if config.model_type in FULL_LENGTH else False

    def __call__(self, text: str) -> Mapping[str, Tensor]:
        tokens: Mapping[str, Tensor] = self.tokenizer(
            [text], padding=self.padding, truncation=True, max_length=self.max_length, return_tensors="pt"
        )
        return tokens


def _tower(model: nn.Module, names: tuple[str, ...]) -> nn.Module:
    """Return a model that has only the named parts of another, and shares them with it."""
    tower = copy.copy(model)
    tower._modules = {name: part for name, part in model._modules.items() if name in names}
    tower._parameters = {}  # the scale and the bias of similarities, which codes do not depend on
    return tower


def _codes(features: Any) -> Tensor:
    """Return the codes among what a model gives: from transformers 5 they are one field of several."""
    codes: Tensor = features if isinstance(features, torch.Tensor) else features.pooler_output
    return codes
