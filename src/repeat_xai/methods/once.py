"""A base's importance from one run; how sure that is remains unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

import torch

from repeat_xai.encoders.calls import metering
from repeat_xai.engine.scheduler import Answer, only
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.methods.base import Importance, importance_of
from repeat_xai.methods.bases.saliency import Saliency
from repeat_xai.methods.provenance import Maps, explained
from repeat_xai.types import Encoder, Explanation, Image, expect, expect_encoder


@final
@dataclass(frozen=True, kw_only=True)
class Once:
    """Importance as the base finds it; uncertainty is NaN."""

    base: Importance = Saliency()

    def __post_init__(self) -> None:
        if isinstance(self.base, type) or not callable(self.base):
            raise ConfigurationError(f"base must be an importance method, such as Saliency(), not {self.base!r}")

    @property
    def calls(self) -> int | None:
        """Encoder calls per image, where that is known beforehand."""
        return getattr(self.base, "calls", None)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        return only(self.answers(encoder, (image,), seed=seed))

    def answers(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Answer[Explanation]]:
        """Of each image, with what it cost, or why it failed."""
        expect_encoder(encoder)
        return explained((self._run(encoder, image, seed=seed) for image in images), self, encoder, seed=seed)

    def _run(self, encoder: Encoder, image: Image, *, seed: int) -> Answer[Maps]:
        expect(encoder, image)
        with metering() as meter:
            try:
                found = importance_of(self.base, encoder, image, seed=seed)
            except EncoderError as error:
                return Answer(image=image, result=error)
        unknown = torch.full_like(found, torch.nan)
        return Answer(image=image, result=Maps(found, unknown), calls=meter.calls, seconds=meter.seconds)
