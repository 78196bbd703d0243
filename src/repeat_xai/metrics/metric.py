"""Descriptions of the three kinds of metric that the registry lists: metrics of a map, of an encoder and a method, and
of sets of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, final, get_args, runtime_checkable

from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.types import Encoder, Explanation, Image

if TYPE_CHECKING:
    from repeat_xai.metrics.map_arrays import Maps, Scores, Segmentations

Direction = Literal["higher", "lower", "neither"]
"""Which values of a metric are better."""
MapName = Literal["importance", "uncertainty"]
"""The maps of an explanation that a method can be judged by."""
MAP_NAMES: tuple[MapName, ...] = get_args(MapName)
ScoredMap = Literal["importance", "uncertainty", "vote_share"]
"""The maps that an encoder metric can give a value of."""
ExplainingMethod = Callable[..., Explanation]
"""A method called as `method(encoder, image, seed=0)`, which returns an explanation."""


@final
@dataclass(frozen=True, kw_only=True)
class MapMetric:
    """A metric that gives each map a number, from the map alone or together with the outline of an object."""

    name: str
    better: Direction
    needs: Literal["map", "segmentation"] = "map"
    """What the metric is computed from: the map alone, or the map and a segmentation of the object in the image."""
    description: str = ""
    """One line that says what the metric measures."""
    citation: str = ""
    section: str = ""
    """The part of the paper that reports the metric; empty if none does."""
    function: Callable[..., Tensor] = field(repr=False)
    """The metric itself: `function(maps)`, or `function(maps, segmentations)` if it needs them."""

    def __call__(self, maps: Maps, segmentations: Segmentations | None = None) -> Scores:
        """Return the metric of each map, with the default options of its function."""
        if self.needs == "map":
            return self.function(maps)
        if segmentations is None:
            raise ConfigurationError(f"{self.name} needs segmentations of the objects in the images")
        return self.function(maps, segmentations)


@runtime_checkable
class EncoderScore(Protocol):
    """A callable that scores a method and an encoder on one image.

    It is usually a frozen dataclass whose fields are the options of the metric.
    """

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> Mapping[ScoredMap, float]:
        """Return the value of the metric for each map it judges, by the map's name."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class EncoderMetric:
    """A metric that judges a method on an encoder, image by image, by explaining more than once."""

    name: str
    better: Direction
    needs: Literal["encoder", "weights", "votes"] = "encoder"
    """What the metric asks for: any encoder, one whose weights can be randomised, or a method that casts votes."""
    description: str = ""
    """One line that says what the metric measures."""
    citation: str = ""
    section: str = ""
    """The part of the paper that reports the metric; empty if none does."""
    maps: tuple[ScoredMap, ...] = ("importance",)
    """The maps of which `score` returns a value."""
    score: EncoderScore = field(repr=False)


@final
@dataclass(frozen=True, kw_only=True)
class SetMetric:
    """A metric of how well maps or codes separate two sets of images. The columns of a table compute it."""

    name: str
    better: Direction
    needs: Literal["other images", "poisoned images"] = "other images"
    """The images that the dataset is compared with."""
    description: str = ""
    """One line that says what the metric measures."""
    citation: str = ""
    section: str = ""
    """The part of the paper that reports the metric; empty if none does."""


Metric = MapMetric | EncoderMetric | SetMetric


def map_of_explanation(explanation: object, map_name: MapName) -> Tensor:
    """Return the named map of an explanation; refuse what is no explanation or has no such map."""
    if not isinstance(explanation, Explanation):
        returned = type(explanation).__name__
        raise ConfigurationError(f"the method returned {returned}, not an explanation; use Repeat, Relax or Spread")
    if map_name not in explanation.maps:
        raise ConfigurationError(f"the method does not measure its {map_name}; use Repeat, Relax or Spread")
    return explanation.maps[map_name]


def maps_of_explanation(explanation: Explanation) -> dict[MapName, Tensor]:
    """Return importance and, if the method measures it, uncertainty, by their names."""
    return {name: explanation.maps[name] for name in MAP_NAMES if name in explanation.maps}
