"""One device, with the encoders and datasets it was asked for at hand."""

from __future__ import annotations

import json
from collections import deque
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
from repeat_xai.experiments.measures import Found, Maps, Subject, scored
from repeat_xai.experiments.settings import Network, Setting, key_of
from repeat_xai.experiments.store.map_store import MapStore
from repeat_xai.experiments.store.row import Row
from repeat_xai.types import Encoder


@final
class Worker:
    """Settings and numbers of images to rows."""

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
        self._encoders: dict[Network, Encoder] = {}
        self._datasets: dict[str, Dataset] = {}

    def encoder(self, network: Network) -> Encoder:
        """The encoder meant, loaded when first asked for."""
        if network not in self._encoders:
            self._encoders[network] = network.load(self.device)
        return self._encoders[network]

    def dataset(self, name: str) -> Dataset:
        """The dataset meant, opened when first asked for."""
        if name not in self._datasets:
            self._datasets[name] = open_dataset(name, root=self.root, download=self.download, check=self.check)
        return self._datasets[name]

    def keys(self, setting: Setting, numbers: Sequence[int]) -> list[str]:
        """What the rows of these images will be called."""
        dataset = self.dataset(setting.dataset)
        about = setting.about(dataset, self.encoder(setting.network))
        return [key_of(about, dataset.keys[number]) for number in numbers]

    def failed(self, setting: Setting, number: int, why: str) -> Row:
        """The row of an image that could not be done."""
        about = setting.about(self.dataset(setting.dataset), self.encoder(setting.network))
        return self._row(setting, about, number, Found(failure=why))

    def rows(self, setting: Setting, numbers: Sequence[int]) -> Iterator[Row]:
        """Yield a row for each image; the row of an image that fails says why."""
        return (row for _, row in self.numbered(setting, numbers))

    def numbered(self, setting: Setting, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
        """Yield each image's number and row.

        Images that cannot be read, and those whose maps are stored and need only be scored, may come before their turn.
        """
        dataset, encoder = self.dataset(setting.dataset), self.encoder(setting.network)
        about = setting.about(dataset, encoder)
        begun: deque[int] = deque()
        settled: deque[tuple[int, Row]] = deque()

        def subjects() -> Iterator[Subject]:
            for number in numbers:
                try:
                    sample = dataset[number]
                    image = load_image(sample.picture, encoder, protocol=setting.protocol, name=dataset.keys[number])
                    outline = sample.segmentation
                    mask = None if outline is None else segmentation_to_image(outline, image)
                except ConfigurationError:
                    raise
                except RepeatError as error:
                    settled.append((number, self._row(setting, about, number, Found(failure=str(error)))))
                    continue
                if (scored := self._scored_before(setting, key_of(about, dataset.keys[number]), mask)) is not None:
                    settled.append((number, self._row(setting, about, number, scored)))
                    continue
                begun.append(number)
                yield Subject(image, mask)

        for found in setting.measure(encoder, setting.method, subjects(), seed=setting.seed):
            while settled:
                yield settled.popleft()
            number = begun.popleft()
            try:
                if self.maps is not None and self.maps.grows and found.explanation is not None:
                    name = dataset.keys[number]
                    key = key_of(about, name)
                    self.maps.write(key, name, found.explanation, calls=found.calls, seconds=found.seconds)
            except OutputError as error:
                found = Found(failure=str(error))
            yield number, self._row(setting, about, number, found)
        yield from settled

    def _scored_before(self, setting: Setting, key: str, mask: Tensor | None) -> Found | None:
        """Return the scores of the maps that an earlier run has stored for this row, if there are any."""
        if self.maps is None or not isinstance(setting.measure, Maps):
            return None
        try:
            stored = self.maps.read(key)
        except OutputError:  # there are none, or they are damaged and will be made again
            return None
        maps = {kind: torch.from_numpy(values) for kind, values in stored.maps.items()}
        return Found(scores=scored(maps, mask), calls=stored.calls, seconds=stored.seconds)

    def _row(self, setting: Setting, about: dict[str, Any], number: int, found: Found) -> Row:
        dataset = self.dataset(setting.dataset)
        return Row(
            key=key_of(about, dataset.keys[number]),
            dataset=dataset.name,
            image=dataset.keys[number],
            encoder=about["encoder"]["name"],
            method=type(setting.method).__name__ if setting.measure.explains else "",
            measure=type(setting.measure).__name__,
            seed=setting.seed,
            scores=found.scores,
            code=found.code,
            calls=found.calls,
            seconds=found.seconds,
            failure=found.failure,
            setting=json.dumps(about, sort_keys=True),
        )
