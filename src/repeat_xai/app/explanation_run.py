"""One explanation under way: what it has cost so far, and looks at what it will find."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from repeat_xai.app.live_preview import look, overheard, stages, unheard
from repeat_xai.encoders.calls import listening
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.scheduler import only
from repeat_xai.errors import RepeatError
from repeat_xai.methods.method_names import Method
from repeat_xai.types import Encoder, Explanation, Image


@final
class Run:
    """A method at work on an image; whoever is told of it may end it by an exception."""

    def __init__(
        self,
        method: Method,
        encoder: Encoder,
        image: Image,
        *,
        seed: int,
        told: Callable[[int], None],
        seen: Callable[[Explanation], None],
    ) -> None:
        self.method, self.encoder, self.image, self.seed = method, _own(encoder, method), image, seed
        self.told, self.seen = told, seen
        self.calls = 0
        self._similarity = torch.zeros(0, dtype=torch.float64)
        self._stages = stages(method)
        self._next = next(self._stages, None)

    def explanation(self) -> Explanation:
        """The same, bit for bit, as the method gives when nobody listens."""
        method = overheard(self.method, self._heard)
        with listening(self._called):
            found = only(method.answers(self.encoder, (self.image,), seed=self.seed))
        return unheard(found, self.method)

    def _called(self, calls: int) -> None:
        self.calls += calls
        self.told(self.calls)

    def _heard(self, similarity: Tensor) -> None:
        count = len(self._similarity) + len(similarity)
        if self._next is None or count >= self.calls:  # of copies no call was told of: the precision is being tried
            return
        self._similarity = torch.cat((self._similarity, similarity.cpu()))
        if count >= self._next:
            with suppress(RepeatError):  # what is wrong is said by the method itself
                self.seen(look(self.method, self.encoder, self.image, self._similarity[: self._next], seed=self.seed))
            self._next = next(self._stages, None)


def _own(encoder: Encoder, method: Method) -> Encoder:
    """A copy of the network for a method that needs gradients: it may hang hooks on it."""
    if isinstance(encoder, TorchEncoder) and getattr(getattr(method, "base", method), "gradients", False):
        return replace(encoder, module=copy.deepcopy(encoder.module))
    return encoder
