"""The class of a text that an image is compared with, and the protocol of encoders that turn texts into codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

from torch import Tensor

from repeat_xai.errors import ConfigurationError

if TYPE_CHECKING:
    from jaxtyping import Float


@final
@dataclass(frozen=True)
class Text:
    """A text as the target of an explanation. It has a class of its own so that it is never taken for a path."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ConfigurationError(f"a text must be a string with at least one letter, not {self.text!r}")


@runtime_checkable
class TextEncoder(Protocol):
    """An encoder with a text tower, whose codes of texts can be compared with its codes of images."""

    def encode_text(self, texts: Sequence[str]) -> Float[Tensor, "texts dim"]:
        """Return the code of each text."""
        ...


def expect_text_encoder(encoder: object) -> TextEncoder:
    """Return the encoder if it has a text tower, or raise a ConfigurationError that says which encoders have one."""
    if not isinstance(encoder, TextEncoder):
        name = getattr(encoder, "name", type(encoder).__name__)
        raise ConfigurationError(
            f"{name} has no text tower; load CLIP, SigLIP or the like as hf:NAME_OR_FOLDER with pool='projection', or "
            "as open_clip:NAME"
        )
    return encoder
