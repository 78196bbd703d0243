"""Tables of the paper → sheets to be filled with the encoders and datasets at hand, and a list of what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final, get_args

from repeat_xai.errors import RepeatError
from repeat_xai.evaluate.emprt import Of
from repeat_xai.experiment.columns import Column, Mean
from repeat_xai.experiment.measures import Robustness
from repeat_xai.experiment.setting import Network, Setting
from repeat_xai.experiment.table import Sheet, cases, lines_of
from repeat_xai.experiment.worker import Worker
from repeat_xai.paper.entry import Block, Entry
from repeat_xai.paper.presets import PRESETS, Preset


class Missing(NamedTuple):
    """What a table asks for and is not at hand."""

    table: str
    what: str
    why: str


@final
@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What is asked for."""

    preset: Preset = PRESETS["paper"]
    networks: tuple[Network, ...] = ()
    """Encoders to run every table with; one of the name of the paper's takes its place."""
    only_these: bool = False
    """Leave out the paper's encoders that are not among them."""
    draws: int = 20
    """Disturbances of an image, for robustness."""
    seed: int = 0

    def encoders(self, block: Block) -> list[Network]:
        """The paper's for this block, and those given."""
        given = {network.label: network for network in self.networks}
        paper = [given.get(name, Network(name=f"torchvision:{name}")) for name in block.encoders]
        if self.only_these:
            paper = [network for network in paper if network.label in given]
        return list(dict.fromkeys((*paper, *self.networks)))

    def sheets(self, entry: Entry, worker: Worker) -> tuple[list[Sheet], list[Missing]]:
        """A sheet a block, with the encoders and datasets that can be had."""
        found, missing = [], []
        for block in entry.blocks:
            networks = []
            for network in self.encoders(block):
                try:
                    worker.encoder(network)
                    networks.append(network)
                except RepeatError as error:
                    missing.append(Missing(entry.name, network.label, str(error)))
            try:
                for dataset in {s.dataset for s in self.sheet(entry, block, [Network()]).settings}:
                    worker.dataset(dataset)
            except RepeatError as error:
                missing.append(Missing(entry.name, block.dataset, str(error)))
                networks = []
            found.append(self.sheet(entry, block, networks))
        return found, missing

    def sheet(self, entry: Entry, block: Block, networks: Sequence[Network]) -> Sheet:
        """One block with these encoders."""
        methods = {name: self.preset.method(name) for name in block.methods}
        base = Setting(dataset=block.dataset, method=methods[block.methods[0]], seed=self.seed)
        lines = cases(base, networks, lines_of(methods))
        if block.both_maps:
            maps: tuple[Of, ...] = get_args(Of)
            lines = {(e, f"{label}, {of}"): c._replace(of=of) for (e, label), c in lines.items() for of in maps}
        others = {s.dataset for column in block.columns for c in lines.values() for s in column.settings(c)}
        against = sorted(others - {block.dataset})
        return Sheet(
            name="-".join([entry.name, block.dataset, *(other.partition("+")[2] for other in against if "+" in other)]),
            title=f"{entry.title}, {block.dataset} ({entry.where})",
            notes=tuple(note for note in (block.note,) if note),
            cases=lines,
            columns=[self._column(column) for column in block.columns],
            printed={(e, label): values for e, rows in block.printed.items() for label, values in rows.items()},
        )

    def _column(self, column: Column) -> Column:
        if isinstance(column, Mean) and isinstance(column.measure, Robustness):
            return replace(column, measure=replace(column.measure, draws=self.draws))
        return column
