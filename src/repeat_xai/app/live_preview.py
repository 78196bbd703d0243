"""Previews of an explanation that is still being made: the same method with only the masks measured so far."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count, takewhile
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.encoders.calls import counting
from repeat_xai.encoders.torch_encoder import TorchEncoder
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import replay
from repeat_xai.errors import RepeatError
from repeat_xai.methods.base import Method
from repeat_xai.methods.fast_estimator import FastEstimator
from repeat_xai.methods.provenance import explanations
from repeat_xai.methods.relax import Relax
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Answer, Encoder, Explanation, Image, Task, only_result

if TYPE_CHECKING:
    from jaxtyping import Float

FIRST_PREVIEW = 128
"""Masks before the first preview; the next ones follow after twice as many masks each."""


def explain_with_previews(
    method: Method,
    encoder: Encoder,
    image: Image,
    *,
    seed: int,
    on_calls: Callable[[int], None],
    on_preview: Callable[[Explanation], None],
) -> Explanation:
    """Explain an image, and meanwhile report encoder calls and previews.

    `on_calls` is called with the number of encoder calls so far, and may end the work by raising an exception. The
    explanation is the same, bit for bit, as without previews.
    """
    calls, measured_count = 0, 0
    similarities: list[Tensor] = []
    sizes = preview_sizes(method)
    next_size = next(sizes, None)

    def add_calls(made: int) -> None:
        nonlocal calls
        calls += made
        on_calls(calls)

    def add_similarities(measured: Tensor) -> None:
        nonlocal measured_count, next_size
        if next_size is None:  # no further preview follows, so nothing is copied from the device
            return
        similarities.append(measured)
        measured_count += len(measured)
        if measured_count >= next_size:
            similarity = torch.cat([part.cpu().double() for part in similarities])
            similarities[:] = [similarity]
            with suppress(RepeatError):  # the method itself reports what is wrong
                on_preview(preview(method, encoder, image, similarity[:next_size], seed=seed))
            next_size = next(sizes, None)

    with counting(add_calls):
        tasks = (Task(image),)
        return only_result(method.answers(_own_copy(encoder, method), tasks, seed=seed, progress=add_similarities))


def preview_sizes(method: Method) -> Iterator[int]:
    """Yield the numbers of masks after which to make a preview."""
    if isinstance(method, Repeat) and isinstance(method.base, Relax):
        block, masks = method.base.grid.block, method.base.masks
        all_masks = (method.calls or 1) - 1
        if method.is_fast:
            yield from _doubled(block, all_masks)
        else:
            yield from _doubled(FIRST_PREVIEW, min(masks, all_masks))
            yield from (size for size in _doubled(masks, all_masks) if size >= FIRST_PREVIEW)
    elif isinstance(method, Relax):
        yield from _doubled(FIRST_PREVIEW, method.masks)


def preview(
    method: Method, encoder: Encoder, image: Image, similarity: Float[Tensor, " masks"], *, seed: int
) -> Explanation:
    """Return what the method gives with these similarities of its first masks, without any encoder call."""
    assert isinstance(method, Relax | Repeat)
    smaller = with_masks(method, len(similarity))
    relax = smaller if isinstance(smaller, Relax) else smaller.base
    assert isinstance(relax, Relax)
    _, height, width = image.pixels.shape
    basis = Basis.of(relax.grid, height, width, torch.device("cpu"))
    estimating: Relax | Repeat | FastEstimator = smaller
    if isinstance(smaller, Repeat) and smaller.is_fast:  # a first preview is worth showing after a single block
        estimating = replace(smaller.fast_estimator, fewest_blocks=1)
    maps = replay(estimating.estimate(basis, image, seed=seed), similarity.cpu())
    answer = Answer(task=Task(image), result=maps, calls=len(similarity) + 1)
    return only_result(explanations(iter((answer,)), smaller, encoder, seed=seed))


def with_masks(method: Relax | Repeat, masks: int) -> Relax | Repeat:
    """Return the method with this number of masks in all."""
    if isinstance(method, Relax):
        return replace(method, masks=masks)
    if method.is_fast:
        return replace(method, budget=masks)
    assert isinstance(method.base, Relax)
    repeats = masks // method.base.masks
    if repeats:
        return replace(method, repeats=repeats)
    return replace(method, base=replace(method.base, masks=masks), repeats=1)


def _doubled(first: int, limit: int) -> Iterator[int]:
    """Yield `first` and its doubles below the limit."""
    return takewhile(lambda masks: masks < limit, (first * 2**n for n in count()))


def _own_copy(encoder: Encoder, method: Method) -> Encoder:
    """Return a copy of the network for a method that needs gradients, since it may add hooks to the network."""
    if isinstance(encoder, TorchEncoder) and getattr(method, "gradients", False):
        return replace(encoder, module=copy.deepcopy(encoder.module))
    return encoder
