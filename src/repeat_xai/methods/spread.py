"""`Spread` gives any base an uncertainty: how much its importance varies over several passes.

    R = (1/K) Σ_k R(k)            U² = (1/(K − 1)) Σ_k (R(k) − R)²

Pass k explains the image, or the encoder, with a small change. The paper's change is dropout on the image, ten times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, final

import torch

from repeat_xai.encoders.onnx import OnnxEncoder
from repeat_xai.encoders.torch_state import seeded
from repeat_xai.engine.steadiness import behaviour_of
from repeat_xai.errors import ConfigurationError, at_least
from repeat_xai.methods.base import (
    Base,
    answer_each,
    expect_base,
    explain_image,
    explain_images,
    importance_of,
    is_deterministic,
    name_of,
    with_codes,
)
from repeat_xai.methods.bases.features import parts_of
from repeat_xai.methods.bases.kernel_shap import KernelShap
from repeat_xai.methods.bases.lime import Lime
from repeat_xai.methods.bases.saliency import Saliency
from repeat_xai.methods.perturbations import CROP_CORNERS, Crops, Ensemble, InputDropout, Pass, Perturbation
from repeat_xai.methods.provenance import MethodMaps, explanations
from repeat_xai.seeds import fold
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, expect_encoder

if TYPE_CHECKING:
    from torch import Tensor

    from repeat_xai.engine.scheduler import Progress


@final
@dataclass(frozen=True, kw_only=True)
class Spread:
    """Importance is the mean over passes, uncertainty their standard deviation."""

    title: ClassVar[str] = "Spread"

    base: Base = Saliency()
    """The method that is run in every pass."""
    by: Perturbation | None = InputDropout()
    """What changes from pass to pass; None leaves it to the base's own random numbers."""
    passes: int = 10
    """Number of passes K."""

    def __post_init__(self) -> None:
        at_least("passes", self.passes, 2)
        expect_base(self.base)
        if isinstance(self.by, type) or not (self.by is None or callable(self.by)):
            raise ConfigurationError(f"by must be a perturbation, such as InputDropout(), or None, not {self.by!r}")
        if self.by is None and is_deterministic(self.base):
            raise ConfigurationError(f"{name_of(self.base)} gives the same map in every pass; name a perturbation")
        if isinstance(self.by, Crops) and self.passes < 2 * CROP_CORNERS:
            raise ConfigurationError(f"crops need at least {2 * CROP_CORNERS} passes, two for each corner")
        if isinstance(self.by, Ensemble) and self.passes % len(self.by.encoders):
            raise ConfigurationError(f"{self.passes} passes are not a multiple of {len(self.by.encoders)} encoders")

    @property
    def gradients(self) -> bool:
        """Whether the base needs gradients."""
        return bool(getattr(self.base, "gradients", False))

    @property
    def calls(self) -> int | None:
        """Encoder calls for an image; None where that is not known beforehand."""
        calls = getattr(self.base, "calls", None)
        return None if calls is None else self.passes * int(calls)

    __call__ = explain_image
    stream = explain_images

    def answers(
        self, encoder: Encoder, tasks: Iterable[Task], *, seed: int, progress: Progress | None = None
    ) -> Iterator[Answer[Explanation]]:
        """Yield an answer for each task, in order; an image that cannot be explained is answered with its error."""
        del progress  # the base is not known to measure similarities
        expect_encoder(encoder)
        run = partial(self._all_passes, with_codes(self.base, encoder), encoder, seed=seed)
        return explanations(answer_each(encoder, tasks, run), self, encoder, seed=seed)

    def _all_passes(self, base: Base, encoder: Encoder, image: Image, *, seed: int) -> MethodMaps:
        """Return mean and deviation over the passes, updated pass by pass (Welford's algorithm).

        The base has the codes of its target by this encoder.
        """
        if isinstance(encoder, OnnxEncoder):
            # Each pass holds the lock of the global generators. A network that loops without end is to do so before.
            behaviour_of(encoder, image.pixels.shape)
        count, mean, squares = torch.zeros(3, *image.pixels.shape[1:], dtype=torch.float64)
        for number in range(self.passes):
            importance = self._pass(base, encoder, image, number, seed=fold(seed, "pass", number))
            seen = importance.isfinite()  # a crop sees only a part of the image
            count = count + seen
            difference = torch.where(seen, importance - mean, 0.0)
            mean = mean + difference / count.clamp_min(1)
            squares = squares + difference * torch.where(seen, importance - mean, 0.0)
        return MethodMaps(mean, (squares / (count - 1).clamp_min(1)).sqrt())

    def _pass(self, base: Base, encoder: Encoder, image: Image, number: int, *, seed: int) -> Tensor:
        """Return R(k) as a map of the unchanged image."""
        changed = Pass(encoder, image)
        if self.by is not None:
            changed = self.by(encoder, image, number=number, seed=fold(seed, "perturbation", image.photo.digest))
        base = base if changed.encoder is encoder else self.base  # another encoder has other codes of the target
        if isinstance(base, KernelShap | Lime):  # the parts are those of the unchanged image, moved along with it
            base = replace(base, features=changed.move_parts(parts_of(base.features, image)[0]))
        with seeded(fold(seed, "encoder"), encoder.device):
            return changed.move_back(importance_of(base, changed.encoder, changed.image, seed=seed))
