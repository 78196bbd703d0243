"""Rows → a table: a line for each encoder and method, a number with its interval for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, final

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.columns import NOTHING, Case, Column, Found
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.votes import Votes
from repeat_xai.metrics import Comparison, Summary, compare_with_baseline
from repeat_xai.metrics.metric import Direction


class Cell(NamedTuple):
    """A number, and how it compares with the baseline's."""

    summary: Summary
    comparison: Comparison | None = None
    printed: float | None = None
    """What the paper prints there."""


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """Titles and numbers."""

    title: str
    notes: tuple[str, ...]
    """What a reader must know to read it."""
    columns: tuple[str, ...]
    better: tuple[Direction, ...]
    lines: Mapping[tuple[str, str], tuple[Cell, ...]]
    """By encoder and method."""


@final
@dataclass(frozen=True, kw_only=True)
class Line:
    """A method under a name, and which of its votes are read."""

    label: str
    method: Method
    votes: Votes = "weighted"


def lines_of(methods: Mapping[str, Method]) -> list[Line]:
    """A line a method; REPEAT also has one with binary votes, of the same repeats."""
    found = []
    for label, method in methods.items():
        found.append(Line(label=label, method=method))
        if isinstance(method, Repeat) and method.votes == "weighted":
            found.append(Line(label=f"{label}, binary votes", method=method, votes="binary"))
    return found


def distinct(encoder_specs: Sequence[EncoderSpec]) -> None:
    """Refuse encoders that a table would call the same."""
    labels = [spec.label for spec in encoder_specs]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigurationError(f"two encoders are called {label} in the table; run them one at a time")


def cases(base: Setting, encoder_specs: Iterable[EncoderSpec], lines: Sequence[Line]) -> dict[tuple[str, str], Case]:
    """Every line under every encoder."""
    return {
        (spec.label, line.label): Case(replace(base, encoder_spec=spec, method=line.method), line.votes)
        for spec in encoder_specs
        for line in lines
    }


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """A table yet to be filled: its lines, its columns, and so the settings it needs."""

    name: str
    """Of its files."""
    title: str
    notes: tuple[str, ...] = ()
    cases: Mapping[tuple[str, str], Case]
    columns: Sequence[Column]
    baseline: str | None = None
    """The method that the others are compared with, image by image."""
    printed: Mapping[tuple[str, str], Sequence[float | None]] = field(default_factory=dict)
    """What the paper prints, line by line."""

    @property
    def settings(self) -> list[Setting]:
        """Each once, those of one encoder together."""
        found = {s: None for case in self.cases.values() for column in self.columns for s in column.settings(case)}
        order = list(dict.fromkeys(setting.encoder_spec for setting in found))
        return sorted(found, key=lambda setting: order.index(setting.encoder_spec))

    @property
    def needs(self) -> dict[Setting, set[str]]:
        """The settings, each with the names of the scores that its rows must have."""
        needs: dict[Setting, set[str]] = {setting: set() for setting in self.settings}
        for case in self.cases.values():
            for column in self.columns:
                for setting in column.settings(case):
                    needs[setting].update(column.needs(case))
        return needs

    def table(self, found: Found) -> Table:
        """Filled."""
        lines = {
            labels: tuple(Cell(NOTHING, printed=value) for value in values)
            for labels, values in self.printed.items()
            if labels not in self.cases
        }
        beside_baseline = {encoder: self._compared(encoder, found) for encoder, _ in self.cases}
        for (encoder, label), case in self.cases.items():
            printed = self.printed.get((encoder, label), [None] * len(self.columns))
            lines[encoder, label] = tuple(
                Cell(column.cell(case, found), beside.get(label), value)
                for column, beside, value in zip(self.columns, beside_baseline[encoder], printed, strict=True)
            )
        intervals = dict.fromkeys(column.interval for column in self.columns)
        return Table(
            title=self.title,
            notes=(*self.notes, *intervals),
            columns=tuple(column.title for column in self.columns),
            better=tuple(column.better for column in self.columns),
            lines=lines,
        )

    def _compared(self, encoder: str, found: Found) -> list[Mapping[str, Comparison]]:
        """Column by column, every method of an encoder with the baseline."""
        mine = {label: case for (of, label), case in self.cases.items() if of == encoder}
        beside: list[Mapping[str, Comparison]] = []
        for column in self.columns:
            values = {label: column.values(case, found) for label, case in mine.items()} if self.baseline else {}
            known = {label: value for label, value in values.items() if value is not None}
            several = self.baseline is not None and self.baseline in known and len(known) > 1
            beside.append(compare_with_baseline(known, baseline=self.baseline) if several and self.baseline else {})
        return beside
