"""Tables of the paper → sheets to be filled with the encoders and datasets at hand, and a list of what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final, get_args

from repeat_xai.errors import RepeatError
from repeat_xai.evaluate.emprt import Of
from repeat_xai.experiment.columns import Case, Column, Mean
from repeat_xai.experiment.measures import Robustness
from repeat_xai.experiment.setting import Network, Setting
from repeat_xai.experiment.table import Sheet, cases, distinct, lines_of
from repeat_xai.experiment.worker import Worker
from repeat_xai.explain.repeat import Repeat
from repeat_xai.images import SIDE
from repeat_xai.methods import Method
from repeat_xai.paper.entry import Block, Entry
from repeat_xai.paper.presets import PRESETS, Preset


class Missing(NamedTuple):
    """What tables ask for and is not at hand."""

    what: str
    why: str
    tables: tuple[str, ...]


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
        distinct(self.networks)

    def encoders(self, block: Block) -> list[Network]:
        """The paper's for this block, and those given."""
        given = {network.name: network for network in self.networks}
        names = [f"torchvision:{name}" for name in block.encoders]
        paper = [
            given.get(name, Network(name=name, fit=SIDE)) for name in names if name in given or not self.only_these
        ]
        return list(dict.fromkeys((*paper, *self.networks)))

    def sheets(self, entries: Sequence[Entry], worker: Worker) -> tuple[list[Sheet], list[Missing]]:
        """A sheet a block, with the encoders and datasets that can be had; what cannot is told once."""
        why: dict[Network | str, str] = {}

        def there(thing: Network | str) -> bool:
            if thing not in why:
                try:
                    worker.encoder(thing) if isinstance(thing, Network) else worker.dataset(thing)
                    why[thing] = ""
                except RepeatError as error:
                    why[thing] = str(error)
            return not why[thing]

        found = []
        lacking: dict[Network | str, list[str]] = {}
        for entry in entries:
            for block in entry.blocks:
                datasets = dict.fromkeys(s.dataset for s in self.sheet(entry, block, [Network()]).settings)
                things: list[Network | str] = [*datasets, *self.encoders(block)]
                for thing in things:
                    if not there(thing):
                        lacking.setdefault(thing, []).append(entry.name)
                networks = [network for network in self.encoders(block) if there(network)]
                found.append(self.sheet(entry, block, networks if all(map(there, datasets)) else []))
        missing = [
            Missing(thing.label if isinstance(thing, Network) else thing, why[thing], tuple(dict.fromkeys(tables)))
            for thing, tables in lacking.items()
        ]
        return found, missing

    def sheet(self, entry: Entry, block: Block, networks: Sequence[Network]) -> Sheet:
        """One block with these encoders."""
        methods = {_label(name, method): method for name in block.methods if (method := self.preset.method(name))}
        base = Setting(dataset=block.dataset, method=next(iter(methods.values())), seed=self.seed)
        lines = cases(base, networks, lines_of(methods))
        if block.both_maps:
            maps: tuple[Of, ...] = get_args(Of)
            lines = {(e, f"{label}, {of}"): c._replace(of=of) for (e, label), c in lines.items() for of in maps}
        others = {s.dataset for column in block.columns for s in column.settings(Case(base))}
        against = sorted(others - {block.dataset})
        return Sheet(
            name="-".join([entry.name, block.dataset, *(other.partition("+")[2] for other in against if "+" in other)]),
            title=f"{entry.title}, {block.dataset} ({entry.where})",
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
