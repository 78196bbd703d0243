"""The text tower of an encoder, which turns texts into codes that can be compared with its codes of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from repeat_xai.encoders.codes import features_of
from repeat_xai.encoders.torch_encoder import evaluating, full_precision
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.types.text import Text

if TYPE_CHECKING:
    from jaxtyping import Float

Tokenise = Callable[[str], Mapping[str, Tensor]]
"""A function that turns a text into the arguments of a text network, for a batch of one."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class TextTower:
    """A network that turns tokens into codes, with the tokeniser that makes tokens of texts.

    Each text is encoded on its own, so that its code does not depend on the others.
    """

    name: str
    """Name of the encoder, for errors."""
    module: nn.Module
    """The network: tokens → codes."""
    tokenise: Tokenise | str
    """The tokeniser, or the line that says why there is none. Images are encoded without it."""

    def __call__(self, texts: Sequence[str]) -> Float[Tensor, "texts dim"]:
        """Return the code of each text, as it is: templates such as "a photo of a …" are not added."""
        if isinstance(texts, str) or not texts:
            raise ConfigurationError(f'texts must be a list of at least one text, such as ["a red car"], not {texts!r}')
        for text in texts:
            Text(text)  # refuses what is no text, and an empty one
        if isinstance(self.tokenise, str):
            raise EncoderError(self.tokenise)
        return torch.cat([self._code(self.tokenise, text) for text in texts])

    def _code(self, tokenise: Tokenise, text: str) -> Float[Tensor, "1 dim"]:
        device = next(self.module.parameters()).device

        def run() -> object:
            with torch.no_grad(), evaluating(self.module), full_precision():
                return self.module(**{name: tokens.to(device) for name, tokens in tokenise(text).items()})

        return features_of(run, f"the text tower of {self.name}", device=device)
