"""Metrics of how much a map changes when the image is disturbed a little: local Lipschitz and max-sensitivity.

    local Lipschitz      max over δ of ‖e(x) − e(x + δ)‖₂ / ‖δ‖₂          δ ~ N(0, 0.1²)
    max-sensitivity      max over δ of ‖e(x) − e(x + δ)‖₂ / ‖e(x)‖₂       δ ~ U(−0.2, 0.2)

e(x) is the map of the image x, divided by its largest magnitude. With `numbers="fresh"`, as in the paper, every
explanation draws random masks of its own, so that Monte-Carlo noise counts as change; with `numbers="common"` all of
them share theirs, which leaves the change that the disturbance causes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, final, get_args

import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError, at_least, choose
from repeat_xai.metrics.metric import EncoderMetric, ExplainingMethod, MapName, ScoredMap, map_of_explanation
from repeat_xai.seeds import fold, uniforms
from repeat_xai.types import Encoder, Image

if TYPE_CHECKING:
    from repeat_xai.types import Map

Numbers = Literal["fresh", "common"]
Distribution = Literal["normal", "uniform"]
DRAWS = 200
"""Disturbances of an image, as in the paper."""


class DisturbedMap(NamedTuple):
    """A disturbance δ and the map e(x + δ)."""

    disturbance: Tensor
    map: Map


def local_lipschitz(
    method: ExplainingMethod,
    encoder: Encoder,
    image: Image,
    *,
    map_name: MapName = "importance",
    deviation: float = 0.1,
    draws: int = DRAWS,
    numbers: Numbers = "fresh",
    seed: int = 0,
) -> float:
    """Return the local Lipschitz estimate of a map (Alvarez-Melis and Jaakkola 2018), the paper's R.

        max over δ of ‖e(x) − e(x + δ)‖₂ / ‖δ‖₂            δ normal, with standard deviation `deviation`

    Range: 0 upwards. Lower is better: the map is more robust. Always defined: a map that is zero for every disturbance
    scores 0. The method is called `draws` + 1 times.

    >>> import repeat_xai as rx, torch
    >>> encoder = rx.load_encoder(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()))
    >>> image = rx.load_image(torch.arange(192.0).view(3, 8, 8) / 192, encoder)
    >>> method = rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=8))
    >>> local_lipschitz(method, encoder, image, draws=2, numbers="common", seed=0) > 0
    True
    """
    original, *others = explain_disturbed(
        method,
        encoder,
        image,
        distribution="normal",
        size=deviation,
        map_name=map_name,
        draws=draws,
        numbers=numbers,
        seed=seed,
    )
    return max(float((original.map - other.map).norm() / other.disturbance.norm()) for other in others)


def max_sensitivity(
    method: ExplainingMethod,
    encoder: Encoder,
    image: Image,
    *,
    map_name: MapName = "importance",
    radius: float = 0.2,
    draws: int = DRAWS,
    numbers: Numbers = "fresh",
    seed: int = 0,
) -> float:
    """Return the largest change of a map near the image, as a share of the map (Yeh et al. 2019).

        max over δ of ‖e(x) − e(x + δ)‖₂ / ‖e(x)‖₂            δ uniform between −`radius` and `radius`

    Range: 0 upwards. Lower is better: the map is more robust. NaN where the map of the image itself is zero. The method
    is called `draws` + 1 times.

    >>> import repeat_xai as rx, torch
    >>> encoder = rx.load_encoder(torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten()))
    >>> image = rx.load_image(torch.arange(192.0).view(3, 8, 8) / 192, encoder)
    >>> method = rx.Repeat(estimator="exact", repeats=2, base=rx.Relax(masks=8))
    >>> max_sensitivity(method, encoder, image, draws=2, numbers="common", seed=0) > 0
    True
    """
    original, *others = explain_disturbed(
        method,
        encoder,
        image,
        distribution="uniform",
        size=radius,
        map_name=map_name,
        draws=draws,
        numbers=numbers,
        seed=seed,
    )
    norm = float(original.map.norm())
    return max(float((original.map - other.map).norm()) for other in others) / norm if norm else math.nan


def disturb(
    image: Image, *, distribution: Distribution, size: float, draws: int, numbers: Numbers, seed: int
) -> Iterator[Image]:
    """Yield copies of the image with noise on their pixels.

    `size` is the standard deviation of the normal or the half-width of the uniform distribution. With
    `numbers="common"` a copy keeps the image's digest, from which methods draw their masks.
    """
    choose("numbers", numbers, get_args(Numbers))
    at_least("draws", draws, 1)
    if not 0 < size < float("inf"):
        raise ConfigurationError(f"the size of the noise must be a number above zero, not {size}")
    for draw in range(draws):
        # The word is part of the random seed: another word would give other disturbances.
        stream = fold(seed, "disturbance", draw, image.photo.digest)
        drawn = torch.from_numpy(uniforms(stream, start=0, stop=1, width=image.pixels.numel())[0])
        unit = torch.special.ndtri(drawn.clamp_min(2**-53)) if distribution == "normal" else 2 * drawn - 1
        pixels = image.pixels + size * unit.view_as(image.pixels).to(image.pixels)
        # The digest is part of the masks' random seed, too.
        digest = f"{image.photo.digest}, disturbance {draw}" if numbers == "fresh" else image.photo.digest
        yield replace(image, pixels=pixels, photo=replace(image.photo, digest=digest))


def explain_disturbed(
    method: ExplainingMethod,
    encoder: Encoder,
    image: Image,
    *,
    distribution: Distribution,
    size: float,
    map_name: MapName,
    draws: int,
    numbers: Numbers,
    seed: int,
) -> Iterator[DisturbedMap]:
    """Yield the map of the image itself, with a disturbance of zero, and then the map of each disturbed copy."""
    unchanged = torch.zeros_like(image.pixels).double()
    yield DisturbedMap(unchanged, _scaled(map_of_explanation(method(encoder, image, seed=seed), map_name)))
    for copy in disturb(image, distribution=distribution, size=size, draws=draws, numbers=numbers, seed=seed):
        disturbance = copy.pixels.double() - image.pixels.double()
        yield DisturbedMap(disturbance, _scaled(map_of_explanation(method(encoder, copy, seed=seed), map_name)))


def _scaled(values: Map) -> Map:
    """Return a map in float64 divided by its largest magnitude; a map of zeros as it is."""
    largest = values.double().abs().max()
    return values.double() / largest if largest > 0 else values.double()


@final
@dataclass(frozen=True, kw_only=True)
class RobustnessScore:
    """The local Lipschitz estimate or the max-sensitivity of a method's importance."""

    metric: Literal["local_lipschitz", "max_sensitivity"]
    draws: int = DRAWS
    """Number of disturbances."""
    numbers: Numbers = "fresh"

    def __post_init__(self) -> None:
        choose("metric", self.metric, ("local_lipschitz", "max_sensitivity"))
        at_least("draws", self.draws, 1)
        choose("numbers", self.numbers, get_args(Numbers))

    def __call__(
        self, method: ExplainingMethod, encoder: Encoder, image: Image, *, seed: int
    ) -> dict[ScoredMap, float]:
        """Return the value for importance."""
        function = local_lipschitz if self.metric == "local_lipschitz" else max_sensitivity
        return {"importance": function(method, encoder, image, draws=self.draws, numbers=self.numbers, seed=seed)}


NAMED = (
    EncoderMetric(
        name="local_lipschitz",
        better="lower",
        description="largest change of the map per change of the image, over random disturbances",
        citation="Alvarez-Melis and Jaakkola 2018",
        section="robustness, appendix tables 1, 2, 5, 6",
        score=RobustnessScore(metric="local_lipschitz"),
    ),
    EncoderMetric(
        name="max_sensitivity",
        better="lower",
        description="largest change of the map as a share of it, over random disturbances",
        citation="Yeh et al. 2019",
        score=RobustnessScore(metric="max_sensitivity"),
    ),
)
