"""Functions that read the scores of rows for one line of a table.

A score is stored under the name METRIC.MAP. A line with binary votes reads the same rows as one with weighted votes:
its importance is the share of votes, and its uncertainty is the variance of the votes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from repeat_xai.experiments.settings import Setting
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.methods.votes import Votes
from repeat_xai.metrics.metric import MapName, ScoredMap

MAPS_OF_BINARY_VOTES = {"importance": "vote_share", "uncertainty": "vote_variance"}
"""The maps that stand for importance and uncertainty where votes are binary."""


class LineContent(NamedTuple):
    """The content of one line of a table: a setting, which names the encoder and the method, and the scores to read."""

    setting: Setting
    votes: Votes = "weighted"
    """The votes of REPEAT that the line is about; the rows hold the scores of both kinds."""
    map_name: MapName = "uncertainty"
    """The map that the line is about, for columns that leave the choice to the line."""


RowsOf = Callable[[Setting], Sequence[Row | None]]
"""A function that returns the rows of a setting in the order of its images; None where one is missing or failed."""


def score_name(metric: str, map_name: ScoredMap, votes: Votes) -> str:
    """Return the name under which rows hold the score of a map.

    >>> score_name("complexity", "uncertainty", "binary")
    'complexity.vote_variance'
    """
    return f"{metric}.{MAPS_OF_BINARY_VOTES.get(map_name, map_name) if votes == 'binary' else map_name}"


def scores_of_rows(rows: Sequence[Row | None], name: str) -> Tensor:
    """Return one score of each row, NaN where a row is missing or does not have the score."""
    values = [float("nan") if row is None else row.scores.get(name, float("nan")) for row in rows]
    return torch.tensor(values, dtype=torch.float64)
