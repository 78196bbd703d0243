"""Uncertainty for any method, as the spread of what it finds in several passes.

    R = (1/K) Σ_k R(k)            U² = (1/(K − 1)) Σ_k (R(k) − R)²

Pass k explains the image, or the encoder, a little changed. The paper's is dropout on the image, ten times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import torch

from repeat_xai.encoders.calls import metering
from repeat_xai.encoders.torch_state import seeded
from repeat_xai.engine.scheduler import Answer, only
from repeat_xai.errors import ConfigurationError, EncoderError, at_least
from repeat_xai.methods.base import Importance, deterministic, importance_of
from repeat_xai.methods.bases.features import parts_of
from repeat_xai.methods.bases.kernel_shap import KernelShap
from repeat_xai.methods.bases.lime import Lime
from repeat_xai.methods.bases.saliency import Saliency
from repeat_xai.methods.perturbations import Crops, Ensemble, InputDropout, Pass, Perturbation
from repeat_xai.methods.provenance import Maps, explained
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Explanation, Image, expect, expect_encoder

if TYPE_CHECKING:
    from torch import Tensor

CORNERS = 4


@final
@dataclass(frozen=True, kw_only=True)
class Spread:
    """Importance as the mean over passes, uncertainty as their standard deviation."""

    base: Importance = Saliency()
    by: Perturbation | None = InputDropout()
    """What differs from pass to pass; None: only the base's own random numbers."""
    passes: int = 10

    def __post_init__(self) -> None:
        at_least("passes", self.passes, 2)
        if isinstance(self.base, type) or not callable(self.base):
            raise ConfigurationError(f"base must be an importance method, such as Saliency(), not {self.base!r}")
        if isinstance(self.by, type) or not (self.by is None or callable(self.by)):
            raise ConfigurationError(f"by must be a perturbation, such as InputDropout(), or None, not {self.by!r}")
        if self.by is None and deterministic(self.base):
            raise ConfigurationError(f"{type(self.base).__name__} finds the same every time; say what is to differ")
        if isinstance(self.by, Crops) and self.passes < 2 * CORNERS:
            raise ConfigurationError(f"crops need at least {2 * CORNERS} passes, two for each corner")
        if isinstance(self.by, Ensemble) and self.passes % len(self.by.encoders):
            raise ConfigurationError(f"{self.passes} passes do not go round {len(self.by.encoders)} encoders evenly")

    @property
    def calls(self) -> int | None:
        """Encoder calls per image, where that is known beforehand."""
        base = getattr(self.base, "calls", None)
        return None if base is None else self.passes * int(base)

    def __call__(self, encoder: Encoder, image: Image, *, seed: int) -> Explanation:
        return only(self.answers(encoder, (image,), seed=seed))

    def stream(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Explanation]:
        """Many images, in order."""
        for answer in self.answers(encoder, images, seed=seed):
            yield only(iter((answer,)))

    def answers(self, encoder: Encoder, images: Iterable[Image], *, seed: int) -> Iterator[Answer[Explanation]]:
        """The same, each with what it cost, or why it failed."""
        expect_encoder(encoder)
        return explained((self._run(encoder, image, seed=seed) for image in images), self, encoder, seed=seed)

    def _run(self, encoder: Encoder, image: Image, *, seed: int) -> Answer[Maps]:
        expect(encoder, image)
        seen, mean, squares = torch.zeros(3, *image.pixels.shape[1:], dtype=torch.float64)
        with metering() as meter:
            try:
                for number in range(self.passes):
                    found = self._pass(encoder, image, number, seed=fold(seed, "pass", number))
                    there = found.isfinite()
                    seen = seen + there
                    away = torch.where(there, found - mean, 0.0)
                    mean = mean + away / seen.clamp_min(1)
                    squares = squares + away * torch.where(there, found - mean, 0.0)
            except EncoderError as error:
                return Answer(image=image, result=error)
        deviation = (squares / (seen - 1).clamp_min(1)).sqrt()
        return Answer(image=image, result=Maps(mean, deviation), calls=meter.calls, seconds=meter.seconds)

    def _pass(self, encoder: Encoder, image: Image, number: int, *, seed: int) -> Tensor:
        """R(k), seen from the image itself."""
        how = Pass(encoder, image)
        if self.by is not None:
            how = self.by(encoder, image, number=number, seed=fold(seed, "perturbation", image.photo.digest))
        base = self.base
        if isinstance(base, KernelShap | Lime):  # the parts are the image's own, whatever is done to it
            base = replace(base, features=how.forth(parts_of(base.features, image)[0]))
        with seeded(fold(seed, "encoder"), encoder.device):
            return how.back(importance_of(base, how.encoder, how.image, seed=seed))
