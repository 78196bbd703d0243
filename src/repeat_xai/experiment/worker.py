"""One device, with the encoders and datasets it was asked for at hand."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from repeat_xai.datasets import Dataset, opened
from repeat_xai.errors import ConfigurationError, OutputError, RepeatError
from repeat_xai.experiment.measures import Found, Subject
from repeat_xai.experiment.setting import Network, Setting, key_of
from repeat_xai.images import load_image, mask_to_image
from repeat_xai.store import MapStore, Row
from repeat_xai.types import Encoder


@final
class Worker:
    """Settings and numbers of images to rows."""

    def __init__(self, *, device: str, root: Path, download: bool = False, maps: MapStore | None = None) -> None:
        self.device, self.root, self.download, self.maps = device, root, download, maps
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
            self._datasets[name] = opened(name, root=self.root, download=self.download)
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
        """A row an image; what fails is told in its row."""
        return (row for _, row in self.numbered(setting, numbers))

    def numbered(self, setting: Setting, numbers: Sequence[int]) -> Iterator[tuple[int, Row]]:
        """The same, with the numbers of the images: one that cannot be read may come before its turn."""
        dataset, encoder = self.dataset(setting.dataset), self.encoder(setting.network)
        about = setting.about(dataset, encoder)
        begun: deque[int] = deque()
        bad: deque[tuple[int, Row]] = deque()

        def subjects() -> Iterator[Subject]:
            for number in numbers:
                try:
                    sample = dataset[number]
                    image = load_image(sample.picture, encoder, protocol=setting.protocol, name=dataset.keys[number])
                    mask = None if sample.mask is None else mask_to_image(sample.mask, image)
                except ConfigurationError:
                    raise
                except RepeatError as error:
                    bad.append((number, self._row(setting, about, number, Found(failure=str(error)))))
                    continue
                begun.append(number)
                yield Subject(image, mask)

        for found in setting.measure(encoder, setting.method, subjects(), seed=setting.seed):
            while bad:
                yield bad.popleft()
            number = begun.popleft()
            try:
                if self.maps is not None and found.explanation is not None:
                    name = dataset.keys[number]
                    self.maps.write(key_of(about, name), name, found.explanation)
            except OutputError as error:
                found = Found(failure=str(error))
            yield number, self._row(setting, about, number, found)
        yield from bad

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
