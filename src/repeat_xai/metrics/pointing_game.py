"""Pointing game (Zhang et al. 2018): is the most important pixel on what is to be found?

Where several are, it is the share of them that is; nothing to be found: undefined, NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from repeat_xai.metrics.metric import Metric, inside

if TYPE_CHECKING:
    from repeat_xai.metrics.metric import Maps, Masks, Scores


def pointing_game(maps: Maps, masks: Masks) -> Scores:
    """1 for a hit, 0 for a miss.

    >>> import torch
    >>> pointing_game(torch.eye(2), torch.tensor([[True, False], [False, False]])).item()
    0.5
    """
    values, found = inside(maps, masks)
    most = values == values.amax(-1, keepdim=True)
    return torch.where(found.any(-1), (most & found).sum(-1).double() / most.sum(-1), torch.nan)


POINTING_GAME = Metric(
    name="pointing_game",
    better="higher",
    needs="masks",
    citation="Zhang et al. 2018",
    section="",
    function=pointing_game,
)
