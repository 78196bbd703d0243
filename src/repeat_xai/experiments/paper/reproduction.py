"""Tables and figures of the paper → what is to be done with the encoders and datasets at hand, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final, get_args

from repeat_xai.data.images import PAPER_SIDE
from repeat_xai.errors import RepeatError, at_least
from repeat_xai.experiments.columns import Case, Column, Mean
from repeat_xai.experiments.measures import Robustness
from repeat_xai.experiments.paper.presets import PRESETS, Preset
from repeat_xai.experiments.paper.printed_figures import FigureEntry
from repeat_xai.experiments.paper.table_entry import Block, Entry
from repeat_xai.experiments.settings import Network, Setting
from repeat_xai.experiments.table import Sheet, cases, distinct, lines_of
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.base import Method
from repeat_xai.methods.repeat import Repeat
from repeat_xai.metrics.emprt import Of
from repeat_xai.seeds import expect_seed


class Missing(NamedTuple):
    """What tables and figures ask for and is not at hand."""

    what: str
    why: str
    entries: tuple[str, ...]


@final
class Stock:
    """What can be had; whatever cannot is remembered, with who asked for it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._why: dict[Network | str, str] = {}
        self._lacking: dict[Network | str, list[str]] = {}

    def has(self, thing: Network | str, *, entry: str) -> bool:
        """Whether an encoder, or a dataset by name, is at hand for this entry."""
        if thing not in self._why:
            try:
                self._worker.encoder(thing) if isinstance(thing, Network) else self._worker.dataset(thing)
                self._why[thing] = ""
            except RepeatError as error:
                self._why[thing] = str(error)
        if self._why[thing]:
            self._lacking.setdefault(thing, []).append(entry)
        return not self._why[thing]

    @property
    def missing(self) -> list[Missing]:
        """Each thing once."""
        return [
            Missing(thing.label if isinstance(thing, Network) else thing, self._why[thing], tuple(dict.fromkeys(names)))
            for thing, names in self._lacking.items()
        ]


@final
@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What is asked for."""

    preset: Preset = PRESETS["paper"]
    networks: tuple[Network, ...] = ()
    """Encoders to run every table with; one of the name of the paper's takes its place."""
    only_these: bool = False
    """Leave out the paper's encoders that are not among them."""
    draws: int = 200
    """Disturbances of an image, for robustness."""
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("draws", self.draws, 1)
        expect_seed(self.seed)

    def encoders(self, paper_names: Sequence[str]) -> list[Network]:
        """The paper's of these names, and those given."""
        paper = {f"torchvision:{name}": Network(name=f"torchvision:{name}", fit=PAPER_SIDE) for name in paper_names}
        given = {network.name: network for network in self.networks}
        distinct([*self.networks, *(one for name, one in paper.items() if name not in given)])
        wanted = [name for name in paper if name in given or not self.only_these]
        return [(paper | given)[name] for name in dict.fromkeys((*wanted, *given))]

    def sheets(self, entries: Sequence[Entry], stock: Stock) -> list[Sheet]:
        """A sheet a block, with the encoders and datasets that can be had."""
        found = []
        for entry in entries:
            for block in entry.blocks:
                datasets = dict.fromkeys(s.dataset for s in self.sheet(entry, block, [Network()]).settings)
                there = [stock.has(dataset, entry=entry.name) for dataset in datasets]
                networks = [one for one in self.encoders(block.encoders) if self._runs(entry, block, one, stock)]
                found.append(self.sheet(entry, block, networks if all(there) else []))
        return found

    def figures(self, entries: Sequence[FigureEntry], stock: Stock) -> list[tuple[FigureEntry, Network]]:
        """Each figure with every encoder that can be had, if its datasets can."""
        found = []
        for entry in entries:
            others = [stock.has(dataset, entry=entry.name) for dataset in entry.against]
            there = stock.has(entry.dataset, entry=entry.name) and (any(others) or not others)
            networks = [one for one in self.encoders([entry.encoder]) if stock.has(one, entry=entry.name)]
            found += [(entry, network) for network in networks if there]
        return found

    def _runs(self, entry: Entry, block: Block, network: Network, stock: Stock) -> bool:
        """Whether an encoder can be had, and what a block makes of it: not every one can be randomised."""
        wanted = dict.fromkeys((network, *(s.network for s in self.sheet(entry, block, [network]).settings)))
        return all(stock.has(one, entry=entry.name) for one in wanted)

    def sheet(self, entry: Entry, block: Block, networks: Sequence[Network]) -> Sheet:
        """One block with these encoders."""
        named = [(name, self.preset.method(name)) for name in block.methods]
        methods = {_label(name, method): method for name, method in named}
        base = Setting(dataset=block.dataset, method=next(iter(methods.values())), seed=self.seed)
        lines = cases(base, networks, lines_of(methods))
        if block.both_maps:
            maps: tuple[Of, ...] = get_args(Of)
            lines = {(e, f"{label}, {of}"): c._replace(of=of) for (e, label), c in lines.items() for of in maps}
        others = {s.dataset for column in block.columns for s in column.settings(Case(base))}
        poisons = [other for other in sorted(others - {block.dataset}) if "+" in other]
        return Sheet(
            name="-".join([entry.name, block.dataset, *(poison.partition("+")[2] for poison in poisons)]),
            title=f"{entry.title}, {', '.join(poisons) or block.dataset} ({entry.where})",
            notes=tuple(note for note in (block.note,) if note),
            cases=lines,
            columns=[self._column(column) for column in block.columns],
            printed={
                (encoder, name.removeprefix("once:")): values
                for encoder, rows in block.printed.items()
                for name, values in rows.items()
            },
        )

    def _column(self, column: Column) -> Column:
        if isinstance(column, Mean) and isinstance(column.measure, Robustness):
            return replace(column, measure=replace(column.measure, draws=self.draws))
        return column


def _label(name: str, method: Method) -> str:
    """As the paper calls it, with the number of repeats that there are."""
    if name.startswith("repeat:repeats=") and isinstance(method, Repeat):
        return f"repeat:repeats={method.repeats}"
    return name.removeprefix("once:")
