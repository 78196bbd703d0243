"""The tables and figures of the paper that can be reproduced with the encoders and datasets that are available."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

from repeat_xai.errors import RepeatError, at_least
from repeat_xai.experiments.columns import Column, MeanColumn
from repeat_xai.experiments.measures import EncoderScores
from repeat_xai.experiments.paper.presets import PRESETS, Preset
from repeat_xai.experiments.paper.printed_figures import PaperFigure
from repeat_xai.experiments.paper.printed_tables import PaperTable, TableBlock
from repeat_xai.experiments.row_scores import LineContent
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.experiments.table import (
    Sheet,
    expect_distinct_labels,
    line_contents,
    lines_of_methods,
    one_line_per_map,
)
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.seeds import expect_seed


class MissingSource(NamedTuple):
    """An encoder or a dataset that is not available, why, and the tables and figures that need it."""

    source: str
    reason: str
    needed_by: tuple[str, ...]


@final
class Availability:
    """The encoders and datasets that can be loaded, and a record of those that cannot."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._reasons: dict[EncoderSpec | str, str] = {}
        self._needed_by: dict[EncoderSpec | str, list[str]] = {}

    def has(self, source: EncoderSpec | str, *, needed_by: str) -> bool:
        """Return whether an encoder, or a dataset by name, can be loaded for a table or figure."""
        if source not in self._reasons:
            try:
                self._worker.encoder(source) if isinstance(source, EncoderSpec) else self._worker.dataset(source)
                self._reasons[source] = ""
            except RepeatError as error:
                self._reasons[source] = str(error)
        if self._reasons[source]:
            self._needed_by.setdefault(source, []).append(needed_by)
        return not self._reasons[source]

    @property
    def missing(self) -> list[MissingSource]:
        """Every encoder and dataset that was asked for and cannot be loaded, once each."""
        return [
            MissingSource(
                source.label if isinstance(source, EncoderSpec) else source,
                self._reasons[source],
                tuple(dict.fromkeys(names)),
            )
            for source, names in self._needed_by.items()
        ]


@final
@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The preset, the encoders and the seed with which tables and figures are reproduced."""

    preset: Preset = PRESETS["paper"]
    encoder_specs: tuple[EncoderSpec, ...] = ()
    """Encoders to run every table with; one that has the name of one of the paper's replaces it."""
    only_these: bool = False
    """Whether to leave out the paper's encoders that are not among `encoder_specs`."""
    draws: int = 200
    """Disturbed copies of each image, for robustness."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("draws", self.draws, 1)
        expect_seed(self.seed)

    def encoders(self, paper_names: Sequence[str]) -> list[EncoderSpec]:
        """Return the paper's encoders of these names, and those in `encoder_specs`."""
        specs = (EncoderSpec.of(f"torchvision:{name}", protocol="paper") for name in paper_names)
        paper = {spec.name: spec for spec in specs}
        given = {spec.name: spec for spec in self.encoder_specs}
        expect_distinct_labels([*self.encoder_specs, *(spec for name, spec in paper.items() if name not in given)])
        wanted = [name for name in paper if name in given or not self.only_these]
        return [(paper | given)[name] for name in dict.fromkeys((*wanted, *given))]

    def sheets(self, tables: Sequence[PaperTable], available: Availability) -> list[Sheet]:
        """Return a sheet for each block of each table, with the encoders and datasets that are available."""
        sheets = []
        for table in tables:
            for block in table.blocks:
                datasets = dict.fromkeys(s.dataset for s in self.sheet(table, block, [EncoderSpec()]).settings)
                # all of them are asked for, also after one that is missing, so that each is recorded
                present = [available.has(dataset, needed_by=table.name) for dataset in datasets]
                specs = [spec for spec in self.encoders(block.encoders) if self._can_run(table, block, spec, available)]
                sheets.append(self.sheet(table, block, specs if all(present) else []))
        return sheets

    def figures(self, figures: Sequence[PaperFigure], available: Availability) -> list[tuple[PaperFigure, EncoderSpec]]:
        """Return each figure whose datasets are available with each encoder that is."""
        pairs = []
        for figure in figures:
            others = [available.has(dataset, needed_by=figure.name) for dataset in figure.against]
            complete = available.has(figure.dataset, needed_by=figure.name) and (any(others) or not others)
            specs = [spec for spec in self.encoders([figure.encoder]) if available.has(spec, needed_by=figure.name)]
            pairs += [(figure, spec) for spec in specs if complete]
        return pairs

    def _can_run(self, table: PaperTable, block: TableBlock, spec: EncoderSpec, available: Availability) -> bool:
        """Return whether an encoder is available, and its randomised copy where the block has one.

        Not every encoder can be randomised: an ONNX file cannot.
        """
        needed = dict.fromkeys((spec, *(s.encoder_spec for s in self.sheet(table, block, [spec]).settings)))
        return all(available.has(each, needed_by=table.name) for each in needed)

    def sheet(self, table: PaperTable, block: TableBlock, specs: Sequence[EncoderSpec]) -> Sheet:
        """Return the sheet of one block of a table with these encoders."""
        named = [(name, self.preset.method(name)) for name in block.methods]
        methods = {_label(name, method): method for name, method in named}
        first_method = next(iter(methods.values()))
        base = Setting(dataset=block.dataset, method=first_method, protocol="paper", seed=self.seed)
        contents = line_contents(base, specs, lines_of_methods(methods))
        others = {s.dataset for column in block.columns for s in column.settings(LineContent(base))}
        poisons = [other for other in sorted(others - {block.dataset}) if "+" in other]
        return Sheet(
            name="-".join([table.name, block.dataset, *(poison.partition("+")[2] for poison in poisons)]),
            title=f"{table.title}, {', '.join(poisons) or block.dataset} ({table.where})",
            notes=tuple(note for note in (block.note,) if note),
            contents=one_line_per_map(contents) if block.both_maps else contents,
            columns=[self._column(column) for column in block.columns],
            printed={
                (encoder, name.removeprefix("once:")): values
                for encoder, rows in block.printed.items()
                for name, values in rows.items()
            },
        )

    def _column(self, column: Column) -> Column:
        if isinstance(column, MeanColumn) and isinstance(column.measure, EncoderScores):
            return replace(column, measure=column.measure.with_draws(self.draws))
        return column


def _label(name: str, method: Method) -> str:
    """Return the method's name in the paper, with the number of repeats that the preset makes of it."""
    if name.startswith("repeat:repeats=") and isinstance(method, Repeat):
        return f"repeat:repeats={method.repeats}"
    return name.removeprefix("once:")
