"""A table of the paper as data: what is explained with what, what is measured, and what was printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from repeat_xai.experiments.columns import Column

Printed = Mapping[str, Mapping[str, tuple[float | None, ...]]]
"""By encoder and method, a value for each column; None where the paper prints none."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """One dataset's part of a table."""

    dataset: str
    encoders: tuple[str, ...]
    """The paper's."""
    methods: tuple[str, ...]
    columns: tuple[Column, ...]
    printed: Printed = field(default_factory=dict)
    both_maps: bool = False
    """Whether each method has a line for importance and one for uncertainty."""
    note: str = ""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """A table."""

    name: str
    where: str
    title: str
    blocks: tuple[Block, ...]
