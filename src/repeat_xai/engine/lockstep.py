"""Several estimates of one image are run in lockstep on one set of masks.

Masks depend on the seed and the image, not on what the codes are compared with. So estimates that differ only in their
targets ask for the same masks in the same order, and the codes of the masked copies serve them all. An estimate that
needs fewer masks ends earlier.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from repeat_xai.engine.masks import Draws

T = TypeVar("T")
Estimate = Generator[Draws | Tensor, Tensor, T]


def in_lockstep(estimates: Sequence[Estimate[T]]) -> Estimate[list[T]]:
    """Ask for what all estimates ask for, and return their results.

    It is sent similarities [masks, estimates], of which each estimate gets its own column. Tensors of one shape that
    several estimates ask for at the same time are asked for together.
    """
    results: dict[int, T] = {}
    requests: dict[int, Draws | Tensor] = {}

    def go_on(number: int, answer: Tensor | None) -> None:
        """Send an estimate an answer, and keep its next request or its result."""
        try:
            estimate = estimates[number]
            requests[number] = next(estimate) if answer is None else estimate.send(answer)
        except StopIteration as stop:
            requests.pop(number, None)
            results[number] = stop.value

    for number in range(len(estimates)):
        go_on(number, None)
    while requests:
        tensors = {number: request for number, request in requests.items() if isinstance(request, Tensor)}
        if tensors:
            kind = next((tensor.shape, tensor.dtype) for tensor in tensors.values())
            together = [number for number, tensor in tensors.items() if (tensor.shape, tensor.dtype) == kind]
            first = tensors[together[0]]
            if len(together) == 1:
                go_on(together[0], (yield first))
            else:
                answers = yield torch.stack([tensors[number] for number in together])
                for number, answer in zip(together, answers, strict=True):
                    go_on(number, answer)
            continue
        draws = {number: request for number, request in requests.items() if isinstance(request, Draws)}
        asked = next(iter(draws.values()))
        assert all(len(each.grids) == len(asked.grids) for each in draws.values()), "estimates ask for different masks"
        similarity = yield asked
        for number in draws:
            go_on(number, similarity[:, number].contiguous())  # a column with gaps is summed in another order
    return [results[number] for number in range(len(estimates))]
