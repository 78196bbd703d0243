"""Sheets and tables: a line for each encoder and method, and for each column a number with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, final

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.columns import UNDEFINED, Column
from repeat_xai.experiments.row_scores import LineContent, RowsOf
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.methods.votes import Votes
from repeat_xai.metrics import Comparison, Summary, compare_with_baseline
from repeat_xai.metrics.metric import MAP_NAMES, Direction


class Cell(NamedTuple):
    """A number of a table, how it compares with the baseline's, and what the paper prints in its place."""

    summary: Summary
    comparison: Comparison | None = None
    printed: float | None = None
    """The paper's number, where there is one."""


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """A filled table: titles, numbers, and notes for its reader."""

    title: str
    notes: tuple[str, ...]
    """Sentences that a reader needs to understand the numbers."""
    columns: tuple[str, ...]
    """Titles of the columns."""
    better: tuple[Direction, ...]
    """Whether higher or lower numbers are better, for each column."""
    lines: Mapping[tuple[str, str], tuple[Cell, ...]]
    """The cells of each line, by encoder and method."""


@final
@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a table, which is repeated for each encoder: a method with its label, and the votes that are read."""

    label: str
    method: Method
    votes: Votes = "weighted"


def lines_of_methods(methods: Mapping[str, Method]) -> list[Line]:
    """Return a line for each method, and for REPEAT a second one with the binary votes of the same repeats."""
    lines = []
    for label, method in methods.items():
        lines.append(Line(label=label, method=method))
        if isinstance(method, Repeat) and method.votes == "weighted":
            lines.append(Line(label=f"{label}, binary votes", method=method, votes="binary"))
    return lines


def expect_distinct_labels(specs: Sequence[EncoderSpec]) -> None:
    """Refuse encoders that have the same label in a table."""
    labels = [spec.label for spec in specs]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigurationError(f"two encoders are called {label} in the table; run them one at a time")


def line_contents(
    base: Setting, specs: Iterable[EncoderSpec], lines: Sequence[Line]
) -> dict[tuple[str, str], LineContent]:
    """Return the content of every line with every encoder, by the labels of encoder and line."""
    return {
        (spec.label, line.label): LineContent(replace(base, encoder_spec=spec, method=line.method), line.votes)
        for spec in specs
        for line in lines
    }


def one_line_per_map(contents: Mapping[tuple[str, str], LineContent]) -> dict[tuple[str, str], LineContent]:
    """Return the content of every line twice: for a line about importance, and for a line about uncertainty."""
    return {
        (encoder, f"{label}, {map_name}"): content._replace(map_name=map_name)
        for (encoder, label), content in contents.items()
        for map_name in MAP_NAMES
    }


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Sheet:
    """A table that is still to be filled: its lines and columns, which together say which rows it needs."""

    name: str
    """Name of its files, without a suffix."""
    title: str
    notes: tuple[str, ...] = ()
    contents: Mapping[tuple[str, str], LineContent]
    """The content of each line, by the labels of encoder and line."""
    columns: Sequence[Column]
    baseline: str | None = None
    """The method that the others are compared with, image by image."""
    printed: Mapping[tuple[str, str], Sequence[float | None]] = field(default_factory=dict)
    """The numbers that the paper prints, line by line."""

    @property
    def settings(self) -> list[Setting]:
        """The settings whose rows the table needs, each once, with those of one encoder together."""
        settings = {
            s: None for content in self.contents.values() for column in self.columns for s in column.settings(content)
        }
        order = list(dict.fromkeys(setting.encoder_spec for setting in settings))
        return sorted(settings, key=lambda setting: order.index(setting.encoder_spec))

    @property
    def score_names(self) -> dict[Setting, set[str]]:
        """The settings, each with the names of the scores that its rows must have."""
        names: dict[Setting, set[str]] = {setting: set() for setting in self.settings}
        for content in self.contents.values():
            for column in self.columns:
                for setting in column.settings(content):
                    names[setting].update(column.score_names(content))
        return names

    def table(self, rows_of: RowsOf) -> Table:
        """Return the table, with every number computed from the rows."""
        lines = {
            labels: tuple(Cell(UNDEFINED, printed=value) for value in values)
            for labels, values in self.printed.items()
            if labels not in self.contents
        }
        comparisons = {encoder: self._comparisons(encoder, rows_of) for encoder, _ in self.contents}
        for (encoder, label), content in self.contents.items():
            printed = self.printed.get((encoder, label), [None] * len(self.columns))
            lines[encoder, label] = tuple(
                Cell(column.summarise(content, rows_of), by_label.get(label), value)
                for column, by_label, value in zip(self.columns, comparisons[encoder], printed, strict=True)
            )
        interval_notes = dict.fromkeys(column.interval_note for column in self.columns)
        return Table(
            title=self.title,
            notes=(*self.notes, *interval_notes),
            columns=tuple(column.title for column in self.columns),
            better=tuple(column.better for column in self.columns),
            lines=lines,
        )

    def _comparisons(self, encoder: str, rows_of: RowsOf) -> list[Mapping[str, Comparison]]:
        """Return for each column how every method on an encoder compares with the baseline, by the line's label."""
        contents = {label: content for (name, label), content in self.contents.items() if name == encoder}
        comparisons: list[Mapping[str, Comparison]] = []
        for column in self.columns:
            values = (
                {label: column.values(content, rows_of) for label, content in contents.items()} if self.baseline else {}
            )
            known = {label: value for label, value in values.items() if value is not None}
            if self.baseline is not None and self.baseline in known and len(known) > 1:
                comparisons.append(compare_with_baseline(known, baseline=self.baseline))
            else:
                comparisons.append({})
        return comparisons
