"""What is done to an image, as data: a result is named by what made it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from repeat_xai.data.dataset import Dataset
from repeat_xai.data.images import ImageProtocol
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.encoders.torch_encoder import Precision, Runtime
from repeat_xai.experiments.measures import Maps, Measure
from repeat_xai.methods.method_names import Method
from repeat_xai.methods.provenance import configuration
from repeat_xai.metrics.randomisation import Randomise, randomised
from repeat_xai.types import Encoder
from repeat_xai.version import __version__


@final
@dataclass(frozen=True, kw_only=True)
class Network:
    """An encoder by name, to be loaded wherever there is work for it."""

    name: str = "efficientnet_lite0"
    weights: str | None = None
    pool: str | None = None
    size: int | None = None
    fit: int | None = None
    """Side of the input that the protocol asks for: an encoder of another is loaded for it."""
    randomise: Randomise | None = None
    """Whether it is to forget its training, and how."""
    precision: Precision = "auto"
    runtime: Runtime = "auto"

    @staticmethod
    def of(text: str, *, size: int | None = None, fit: int | None = None) -> Network:
        """The encoder written as NAME or NAME=WEIGHTS; the path of an ONNX file may have any sign in it.

        >>> Network.of("torchvision:alexnet=random").weights, str(Network.of("onnx:lr=3.onnx"))
        ('random', 'onnx:lr=3.onnx')
        """
        text = text.strip()
        name, _, weights = (text, "", "") if text.startswith("onnx:") else text.partition("=")
        return Network(name=name.strip(), weights=weights.strip() or None, size=size, fit=fit)

    def __str__(self) -> str:
        return self.name if self.weights is None else f"{self.name}={self.weights}"

    def load(self, device: str) -> Encoder:
        encoder = self._loaded(self.size, device)
        if self.fit is not None and encoder.preprocessing.size != (self.fit, self.fit):
            encoder = self._loaded(self.fit, device)
        return encoder if self.randomise is None else randomised(encoder, self.randomise)

    def _loaded(self, size: int | None, device: str) -> Encoder:
        return load_encoder(
            self.name,
            weights=self.weights,
            pool=self.pool,
            size=size,
            device=device,
            precision=self.precision,
            runtime=self.runtime,
        )

    @property
    def label(self) -> str:
        """As tables name it: without where it comes from."""
        stem = Path(self.name.removeprefix("onnx:")).stem if self.name.startswith("onnx:") else self.name
        return stem.rpartition(":")[2].rpartition("/")[2]


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """All that an image's result depends on, but for the image."""

    dataset: str
    network: Network = Network()
    method: Method
    measure: Measure = Maps()
    protocol: ImageProtocol = "paper"
    seed: int = 0
    first: int | None = None
    """Of how many images; of all, if not told. A row does not depend on it."""

    def about(self, dataset: Dataset, encoder: Encoder) -> dict[str, Any]:
        """The setting in full, as plain JSON."""
        found = {
            "dataset": dataset.name,
            "encoder": {
                "name": encoder.name,
                "weights": encoder.weights,
                "pool": encoder.pool,
                "preprocessing": configuration(encoder.preprocessing),
                "precision": self.network.precision,
                "runtime": self.network.runtime,
            },
            "method": configuration(self.method) if self.measure.explains else None,
            "measure": configuration(self.measure),
            "protocol": self.protocol,
            "seed": self.seed,
            "repeat-xai": __version__,
        }
        return dict(json.loads(json.dumps(found)))


def key_of(about: dict[str, Any], image: str) -> str:
    """The name of one image's result.

    >>> key_of({"seed": 0}, "cat") == key_of({"seed": 1}, "cat")
    False
    """
    return hashlib.sha256(json.dumps([about, image], sort_keys=True).encode()).hexdigest()[:32]
