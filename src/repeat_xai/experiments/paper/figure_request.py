"""The request for one figure of the paper: its images, its encoder, and what methods find in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from repeat_xai.data.images import load_image
from repeat_xai.data.open_dataset import dataset_title
from repeat_xai.errors import RepeatError, at_least
from repeat_xai.experiments.paper.presets import Preset
from repeat_xai.experiments.paper.printed_figures import PaperFigure
from repeat_xai.experiments.settings import EncoderSpec, Setting, key_of
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.experiments.worker import Worker
from repeat_xai.methods.provenance import configuration
from repeat_xai.methods.repeat import Repeat
from repeat_xai.types import Encoder, Explanation, Image
from repeat_xai.version import __version__

RowSource = Callable[[Setting, Sequence[int]], Iterable[Row | None]]
"""A function that returns the row of each image of a setting's dataset, by number; None where an image failed."""


class FigureSource(NamedTuple):
    """The dataset, the encoder and the budget that a figure was made from, in words."""

    dataset: str
    encoder: str
    budget: str = ""
    """The number of repeats and masks; empty where the figure depends on neither."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FigureRequest:
    """A figure of the paper, the encoder and preset to make it with, and the number of images."""

    figure: PaperFigure
    encoder_spec: EncoderSpec
    preset: Preset
    worker: Worker
    images: int
    seed: int
    rows: RowSource | None = None
    """Where the scores of images come from; None: the worker computes them when they are needed."""

    def __post_init__(self) -> None:
        at_least("images", self.images, 1)

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded."""
        return self.worker.encoder(self.encoder_spec)

    @property
    def repeat(self) -> Repeat:
        """REPEAT as the preset configures it."""
        method = self.preset.method("repeat")
        assert isinstance(method, Repeat)
        return method

    @property
    def source(self) -> FigureSource:
        """The figure's dataset, the encoder and REPEAT's budget, in words."""
        budget = f"{self.preset.repeats} repeats of {self.preset.relax.masks} masks"
        return FigureSource(dataset_title(self.figure.dataset), self.encoder_spec.label, budget)

    def other_dataset(self) -> str:
        """Return the first of the figure's alternatives for its second dataset that is available."""
        errors: list[RepeatError] = []
        for name in self.figure.against:
            try:
                self.worker.dataset(name)
                return name
            except RepeatError as error:
                errors.append(error)
        raise errors[0]

    def poison_title(self, poisoned: str) -> str:
        """Return the title of a poisoned dataset, with a remark if it is not the one in the paper."""
        return dataset_title(poisoned) + ("" if poisoned == self.figure.against[0] else ", not the paper's poison")

    @property
    def key(self) -> str:
        """A name for everything that the figure depends on, except for rows."""
        datasets = [self.figure.dataset, *([self.other_dataset()] if self.figure.against else [])]
        images = {name: [self.worker.dataset(name).keys[number] for number in self.numbers(name)] for name in datasets}
        parts = [configuration(part) for part in (self.figure, self.encoder_spec, self.preset)]
        return key_of({"asked": parts, "images": images, "seed": self.seed}, f"{self.encoder.weights} {__version__}")

    @property
    def settings(self) -> list[Setting]:
        """The settings whose rows the figure is drawn from; none for a figure of single images."""
        datasets = (self.figure.dataset, self.other_dataset()) if self.figure.scored else ()
        return [self.setting(dataset, method) for method in self.figure.methods for dataset in datasets]

    def setting(self, dataset: str, method: str) -> Setting:
        """Return the setting in which a method of the preset scores the images of a dataset."""
        return Setting(
            dataset=dataset,
            encoder_spec=self.encoder_spec,
            method=self.preset.method(method),
            protocol="paper",
            seed=self.seed,
        )

    def numbers(self, dataset: str) -> list[int]:
        """Return the numbers of the images to use: as many as requested, as the paper has and as the dataset has."""
        images = self.worker.dataset(dataset)
        return images.draw(min(self.images, self.figure.images, len(images)), seed=self.seed)

    def image(self, dataset: str, number: int) -> Image:
        """Return one image as the paper shows it to an encoder, named without the digest that its key may end with."""
        images = self.worker.dataset(dataset)
        name = images.keys[number].rpartition(" (")[0] or images.keys[number]
        return load_image(images[number].picture, self.encoder, protocol="paper", name=name)

    def first_image(self) -> Image:
        """Return the image of a figure that shows only one."""
        return self.image(self.figure.dataset, self.numbers(self.figure.dataset)[0])

    def readable_images(self) -> Iterator[Image]:
        """Yield every image of the figure that can be read, with a warning for each that cannot."""
        for number in self.numbers(self.figure.dataset):
            try:
                yield self.image(self.figure.dataset, number)
            except RepeatError as error:
                warnings.warn(f"{self.figure.name}: left out: {error}", stacklevel=2)

    def explain(self, method: str, image: Image) -> Explanation:
        """Return the explanation of an image by a method of the preset."""
        return self.preset.method(method)(self.encoder, image, seed=self.seed)

    def scored_rows(self, dataset: str, method: str, numbers: Sequence[int]) -> list[Row]:
        """Return the rows of these images of a dataset, without those that failed."""
        setting = self.setting(dataset, method)
        rows = (self.rows or self.worker.rows)(setting, numbers)
        return [row for row in rows if row is not None]
