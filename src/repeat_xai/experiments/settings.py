"""Settings hold everything that the result of an image depends on; a result is stored under a key made from them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from repeat_xai.data.dataset import Dataset
from repeat_xai.data.images import PAPER_SIDE, ImageProtocol
from repeat_xai.encoders.load_encoder import load_encoder
from repeat_xai.encoders.torch_encoder import Precision, Runtime
from repeat_xai.experiments.map_scores import MapScores
from repeat_xai.experiments.measures import Measure
from repeat_xai.methods.base import Method
from repeat_xai.methods.provenance import configuration
from repeat_xai.metrics.randomisation import Randomise, randomise_encoder
from repeat_xai.types import Encoder
from repeat_xai.version import __version__


@final
@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """The specification of an encoder: its name and options, from which a worker loads it."""

    name: str = "efficientnet_lite0"
    weights: str | None = None
    """A file of weights, or `random`; None loads the encoder's own."""
    pool: str | None = None
    """Name of the pooling; None chooses the encoder's own."""
    size: int | None = None
    """Side of the square input in pixels; None chooses the encoder's own."""
    fit: int | None = None
    """Side of the input that the protocol needs: the encoder is loaded for this size if its own is another."""
    randomise: Randomise | None = None
    """The way in which the weights are randomised; None leaves them as they are."""
    precision: Precision = "auto"
    runtime: Runtime = "auto"

    @staticmethod
    def of(text: str, *, size: int | None = None, protocol: ImageProtocol = "encoder") -> EncoderSpec:
        """Return the encoder written as NAME or NAME=WEIGHTS, for a protocol; an ONNX file's path may contain `=`.

        >>> EncoderSpec.of("torchvision:alexnet=random").weights, str(EncoderSpec.of("onnx:lr=3.onnx"))
        ('random', 'onnx:lr=3.onnx')
        """
        text = text.strip()
        name, _, weights = (text, "", "") if text.startswith("onnx:") else text.partition("=")
        fit = PAPER_SIDE if protocol == "paper" else None
        return EncoderSpec(name=name.strip(), weights=weights.strip() or None, size=size, fit=fit)

    def __str__(self) -> str:
        return self.name if self.weights is None else f"{self.name}={self.weights}"

    def load(self, device: str) -> Encoder:
        """Load the encoder to a device, and randomise it if the spec says so."""
        encoder = self._loaded(self.size, device)
        if self.fit is not None and encoder.preprocessing.size != (self.fit, self.fit):
            encoder = self._loaded(self.fit, device)
        return encoder if self.randomise is None else randomise_encoder(encoder, self.randomise)

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
        """The name in tables: without the library or folder that it comes from."""
        stem = Path(self.name.removeprefix("onnx:")).stem if self.name.startswith("onnx:") else self.name
        return stem.rpartition(":")[2].rpartition("/")[2]


@final
@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything that an image's result depends on, apart from the image."""

    dataset: str
    encoder_spec: EncoderSpec = EncoderSpec()
    method: Method
    measure: Measure = MapScores()
    protocol: ImageProtocol = "encoder"
    seed: int = 0
    max_images: int | None = None
    """Number of images that are used; None uses all. A row does not depend on it."""

    def describe(self, dataset: Dataset, encoder: Encoder) -> dict[str, Any]:
        """Return the whole setting as plain JSON."""
        description = {
            "dataset": dataset.name,
            "encoder": {
                "name": encoder.name,
                "weights": encoder.weights,
                "pool": encoder.pool,
                "preprocessing": configuration(encoder.preprocessing),
                "precision": self.encoder_spec.precision,
                "runtime": self.encoder_spec.runtime,
            },
            "method": configuration(self.method) if self.measure.explains else None,
            "measure": configuration(self.measure),
            "protocol": self.protocol,
            "seed": self.seed,
            "repeat-xai": __version__,
        }
        return dict(json.loads(json.dumps(description)))


def key_of(description: dict[str, Any], image: str) -> str:
    """Return the key of one image's result.

    >>> key_of({"seed": 0}, "cat") == key_of({"seed": 1}, "cat")
    False
    """
    return hashlib.sha256(json.dumps([description, image], sort_keys=True).encode()).hexdigest()[:32]
