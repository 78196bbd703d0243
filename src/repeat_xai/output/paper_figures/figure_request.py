"""What a figure is made of: its images, ready for the encoder, and what methods say of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from repeat_xai.data.images import load_image
from repeat_xai.data.open_dataset import dataset_title
from repeat_xai.errors import RepeatError, at_least
from repeat_xai.experiments.paper.presets import Preset
from repeat_xai.experiments.paper.printed_figures import FigureEntry
from repeat_xai.experiments.settings import Network, Setting, key_of
from repeat_xai.experiments.store.row import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.provenance import configuration
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Encoder, Explanation, Image
from repeat_xai.version import __version__

Rows = Callable[[Setting, Sequence[int]], Iterable[Row | None]]
"""A row for each of these images; None where one failed."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A figure, with whom and from how much it is to be drawn."""

    entry: FigureEntry
    network: Network
    preset: Preset
    worker: Worker
    images: int
    seed: int
    rows: Rows | None = None
    """Where scores come from; made when they are needed, if not told."""

    def __post_init__(self) -> None:
        at_least("images", self.images, 1)

    @property
    def encoder(self) -> Encoder:
        return self.worker.encoder(self.network)

    @property
    def repeat(self) -> Repeat:
        """REPEAT as the preset has it."""
        found = self.preset.method("repeat")
        assert isinstance(found, Repeat)
        return found

    def against(self) -> str:
        """The first dataset of those that will do which can be had."""
        why: list[RepeatError] = []
        for name in self.entry.against:
            try:
                self.worker.dataset(name)
                return name
            except RepeatError as error:
                why.append(error)
        raise why[0]

    def poison(self, against: str) -> str:
        """In words, with a warning where it is not the paper's."""
        return dataset_title(against) + ("" if against == self.entry.against[0] else ", not the paper's poison")

    @property
    def key(self) -> str:
        """A name for all that it depends on but for rows."""
        sets = [self.entry.dataset, *([self.against()] if self.entry.against else [])]
        images = {name: [self.worker.dataset(name).keys[number] for number in self.numbers(name)] for name in sets}
        asked = [configuration(part) for part in (self.entry, self.network, self.preset)]
        return key_of({"asked": asked, "images": images, "seed": self.seed}, f"{self.encoder.weights} {__version__}")

    @property
    def settings(self) -> list[Setting]:
        """Whose rows it is drawn of."""
        sets = (self.entry.dataset, self.against()) if self.entry.scored else ()
        return [self.setting(dataset, method) for method in self.entry.methods for dataset in sets]

    def setting(self, dataset: str, method: str) -> Setting:
        """Scores of a dataset's images by a method of the preset."""
        return Setting(dataset=dataset, network=self.network, method=self.preset.method(method), seed=self.seed)

    def numbers(self, dataset: str) -> list[int]:
        """Of as many images as there are, as asked for and as shown."""
        found = self.worker.dataset(dataset)
        return found.draw(min(self.images, self.entry.images, len(found)), seed=self.seed)

    def image(self, dataset: str, number: int) -> Image:
        """One image as the paper shows it to an encoder; what a key says of its content is left out of its name."""
        found = self.worker.dataset(dataset)
        name = found.keys[number].rpartition(" (")[0] or found.keys[number]
        return load_image(found[number].picture, self.encoder, protocol="paper", name=name)

    def first(self) -> Image:
        """The image of a figure of one."""
        return self.image(self.entry.dataset, self.numbers(self.entry.dataset)[0])

    def every(self) -> Iterator[Image]:
        """All that can be read."""
        for number in self.numbers(self.entry.dataset):
            try:
                yield self.image(self.entry.dataset, number)
            except RepeatError as error:
                warnings.warn(f"{self.entry.name}: left out: {error}", stacklevel=2)

    def explained(self, method: str, image: Image) -> Explanation:
        """What a method of the preset says."""
        return self.preset.method(method)(self.encoder, image, seed=self.seed)

    def note(self, *words: str) -> str:
        """What the figure is of, in one line."""
        budget = f"{self.preset.repeats} repeats of {self.preset.relax.masks} masks"
        return "  ·  ".join((*words, self.network.label, budget))
