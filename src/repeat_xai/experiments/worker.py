"""A worker makes rows on one device, and keeps the encoders and datasets that it has loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from repeat_xai.data.content_keys import Check
from repeat_xai.data.dataset import Dataset
from repeat_xai.data.images import load_image, segmentation_to_image
from repeat_xai.data.open_dataset import open_dataset
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError
from repeat_xai.experiments.map_scores import MapScores, score_maps
from repeat_xai.experiments.measures import ImageTag, Measured
from repeat_xai.experiments.settings import EncoderSpec, Setting, key_of
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row_schema import Row
from repeat_xai.types import Encoder, Task


@final
class Worker:
    """Makes the rows of images, given a setting and the numbers of the images."""

    def __init__(
        self,
        *,
        device: str,
        root: Path,
        download: bool = False,
        check: Check = "time",
        maps: MapStore | None = None,
    ) -> None:
        self.device, self.root, self.download, self.check, self.maps = device, root, download, check, maps
        self._encoders: dict[EncoderSpec, Encoder] = {}
        self._datasets: dict[str, Dataset] = {}

    def encoder(self, spec: EncoderSpec) -> Encoder:
        """Return an encoder, which is loaded when first needed."""
        if spec not in self._encoders:
            self._encoders[spec] = spec.load(self.device)
        return self._encoders[spec]

    def dataset(self, name: str) -> Dataset:
        """Return a dataset, which is opened when first needed."""
        if name not in self._datasets:
            self._datasets[name] = open_dataset(name, root=self.root, download=self.download, check=self.check)
        return self._datasets[name]

    def keys(self, setting: Setting, numbers: Sequence[int]) -> list[str]:
        """Return the keys of the rows of these images."""
        dataset = self.dataset(setting.dataset)
        description = setting.describe(dataset, self.encoder(setting.encoder_spec))
        return [key_of(description, dataset.keys[number]) for number in numbers]

    def failed_row(self, setting: Setting, number: int, reason: str) -> Row:
        """Return the row of an image that could not be measured."""
        description = setting.describe(self.dataset(setting.dataset), self.encoder(setting.encoder_spec))
        return self._row(setting, description, number, Measured(failure=reason))

    def rows(self, setting: Setting, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield a row for each image; the row of an image that fails says why."""
        return (row for _, row in self.numbered_rows(setting, numbers))

    def numbered_rows(self, setting: Setting, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
        """Yield each image's number and row, in order."""
        dataset, encoder = self.dataset(setting.dataset), self.encoder(setting.encoder_spec)
        description = setting.describe(dataset, encoder)
        tasks = (self._task(setting, description, number) for number in numbers)
        for subject, measured in setting.measure(encoder, setting.method, tasks, seed=setting.seed):
            image = dataset.keys[subject.number]
            if self.maps is not None and self.maps.writable and measured.explanation is not None:
                try:
                    key, explanation = key_of(description, image), measured.explanation
                    self.maps.write(key, image, explanation, calls=measured.calls, seconds=measured.seconds)
                except OutputError as error:
                    measured = Measured(failure=str(error))
            yield subject.number, self._row(setting, description, subject.number, measured)

    def _task(self, setting: Setting, description: dict[str, Any], number: int) -> Task:
        """Return the task for one image: the image to explain, the error if it cannot be read, or its known scores."""
        dataset, encoder = self.dataset(setting.dataset), self.encoder(setting.encoder_spec)
        try:
            sample = dataset[number]
            image = load_image(sample.picture, encoder, protocol=setting.protocol, name=dataset.keys[number])
            segmentation = None
            if sample.segmentation is not None:
                segmentation = segmentation_to_image(sample.segmentation, image)
        except ConfigurationError:
            raise
        except RepeatError as error:
            return Task(error, ImageTag(number))
        measured = self._scored_before(setting, key_of(description, dataset.keys[number]), segmentation)
        return Task(None if measured is not None else image, ImageTag(number, segmentation, measured))

    def _scored_before(self, setting: Setting, key: str, segmentation: Tensor | None) -> Measured | None:
        """Return the scores of the maps that an earlier run has stored for this row, if there are any."""
        if self.maps is None or not isinstance(setting.measure, MapScores):
            return None
        try:
            stored = self.maps.read(key)
        except OutputError:  # there are none, or they are damaged and will be made again
            return None
        maps = {kind: torch.from_numpy(values) for kind, values in stored.maps.items()}
        return Measured(scores=score_maps(maps, segmentation), calls=stored.calls, seconds=stored.seconds)

    def _row(self, setting: Setting, description: dict[str, Any], number: int, measured: Measured) -> Row:
        dataset = self.dataset(setting.dataset)
        return Row(
            key=key_of(description, dataset.keys[number]),
            dataset=dataset.name,
            image=dataset.keys[number],
            encoder=description["encoder"]["name"],
            method=type(setting.method).__name__ if setting.measure.explains else "",
            measure=type(setting.measure).__name__,
            seed=setting.seed,
            scores=measured.scores,
            code=measured.code,
            calls=measured.calls,
            seconds=measured.seconds,
            failure=measured.failure,
            setting=json.dumps(description, sort_keys=True),
        )
