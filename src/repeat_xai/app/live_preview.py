"""A look at what the masks so far say, while a method goes on: the method as it would be with no more than those.

Similarities are heard where they are made, in the kernel, so that the method itself runs as it always does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from repeat_xai.engine.kernels import Kernel, Linear
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import Answer, only
from repeat_xai.methods.fast_estimator import FEWEST, Pool, Pooled, regression, resample
from repeat_xai.methods.method_names import Method
from repeat_xai.methods.provenance import Maps, configuration, explained
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.seeds import fold
from repeat_xai.types import Encoder, Explanation, Image, Preprocessing

if TYPE_CHECKING:
    from jaxtyping import Float

FIRST = 128
"""Masks before the first look; then after twice as many each time."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Heard:
    """A kernel whose similarities are told."""

    kernel: Kernel
    tell: Callable[[Tensor], None]

    def __call__(self, code: Float[Tensor, " dim"], codes: Float[Tensor, "masks dim"]) -> Float[Tensor, " masks"]:
        found = self.kernel(code, codes)
        self.tell(found)
        return found

    def __repr__(self) -> str:
        return repr(self.kernel)


def overheard(method: Method, tell: Callable[[Tensor], None]) -> Method:
    """The same method, if it is made of masks, with its similarities told."""
    relax = method if isinstance(method, Relax) else getattr(method, "base", None)
    if not isinstance(relax, Relax):
        return method
    heard = replace(relax, similarity=Heard(relax.similarity, tell))
    return replace(method, base=heard) if isinstance(method, Repeat) else heard


def unheard(explanation: Explanation, method: Method) -> Explanation:
    """The explanation as the method itself would have signed it."""
    return replace(explanation, provenance={**explanation.provenance, "method": configuration(method)})


def stages(method: Method) -> Iterator[int]:
    """After how many masks to look."""
    if isinstance(method, Repeat) and isinstance(method.base, Relax):
        block, masks = method.base.grid.block, method.base.masks
        most = (method.calls or 1) - 1
        if _fast(method):
            yield from _doubled(block, most)
        else:
            yield from _doubled(FIRST, min(masks, most))
            yield from (many for many in _doubled(masks, most) if many >= FIRST)
    elif isinstance(method, Relax):
        yield from _doubled(FIRST, method.masks)


def look(
    method: Method, encoder: Encoder, image: Image, similarity: Float[Tensor, " masks"], *, seed: int
) -> Explanation:
    """What the method finds with the masks whose similarities are given and no more."""
    assert isinstance(method, Relax | Repeat)
    smaller = cut(method, len(similarity))
    if isinstance(smaller, Repeat) and _fast(smaller):
        maps = _pooled(smaller, image, similarity, seed=seed)
    else:
        found = Context().run(_remembered, smaller, encoder, image, similarity, seed=seed)
        maps = Maps(found.importance, found.uncertainty, found.vote_share)
    answer = Answer(image=image, result=maps, calls=len(similarity) + 1)
    return only(explained(iter((answer,)), smaller, encoder, seed=seed))


def cut(method: Relax | Repeat, masks: int) -> Relax | Repeat:
    """The method as it would be with so many masks in all."""
    if isinstance(method, Relax):
        return replace(method, masks=masks)
    if _fast(method):
        return replace(method, pool=masks)
    assert isinstance(method.base, Relax)
    repeats = masks // method.base.masks
    if repeats:
        return replace(method, repeats=repeats)
    return replace(method, base=replace(method.base, masks=masks), repeats=1)


def _doubled(first: int, most: int) -> Iterator[int]:
    return takewhile(lambda masks: masks < most, (first * 2**n for n in count()))


def _fast(method: Repeat) -> bool:
    return method.estimator == "fast" and isinstance(method.base, Relax) and method.base.masks >= FEWEST


def _pooled(method: Repeat, image: Image, similarity: Float[Tensor, " masks"], *, seed: int) -> Maps:
    """The votes from a pool of whole blocks, be it a single one."""
    base = method.base
    assert isinstance(base, Relax)
    _, height, width = image.pixels.shape
    basis = Basis.of(base.grid, height, width, torch.device("cpu"))
    row = fold(seed, "pool", image.photo.digest)
    draws = basis.draw_blocks(seed=row, start=0, stop=len(similarity) // base.grid.block)
    counts = resample(len(similarity), base.masks, seed=fold(row, "resamples"))
    pool = Pool(draws, similarity.cpu())
    way = Pooled(
        base=base,
        threshold=method.threshold,
        votes=method.votes,
        repeats=method.repeats,
        pool=len(similarity),
        tolerance=None,
    )
    p, share = way.tally(basis, pool, regression(basis, pool), counts)
    return Maps(p, p * (1 - p), share, {"pool": {"masks": len(similarity)}})


def _remembered(
    method: Relax | Repeat, encoder: Encoder, image: Image, similarity: Tensor, *, seed: int
) -> Explanation:
    """The method again, by an encoder that remembers how alike the image stayed under each mask."""
    base = method if isinstance(method, Relax) else method.base
    assert isinstance(base, Relax)
    recalled = replace(base, similarity=Linear())
    again = replace(method, base=recalled) if isinstance(method, Repeat) else recalled
    seen = replace(image, pixels=torch.ones(1, *image.pixels.shape[1:]))
    return only(again.answers(_Memory(encoder, iter([1.0, *similarity.tolist()])), (seen,), seed=seed))


@final
@dataclass(frozen=True, eq=False)
class _Memory:
    """An encoder whose codes are the similarities already known, in their order, to an image whose code is 1."""

    encoder: Encoder
    known: Iterator[float]
    stochastic: bool = True
    """Its codes follow each other and not the images, so it must not be tried out."""

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def weights(self) -> str:
        return self.encoder.weights

    @property
    def pool(self) -> str:
        return self.encoder.pool

    @property
    def preprocessing(self) -> Preprocessing:
        return self.encoder.preprocessing

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def __call__(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch dim"]:
        return torch.tensor([[next(self.known)] for _ in images], dtype=torch.float64)
