"""The measure of an image's maps by every metric of a map, for weighted and for binary votes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import torch

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.measures import ImageTag, Measured, measured_without_image
from repeat_xai.methods.base import Method
from repeat_xai.metrics import map_metrics
from repeat_xai.metrics.detection import AGGREGATES
from repeat_xai.metrics.emprt import resolved_entropy
from repeat_xai.types import Encoder, Explanation, Task

if TYPE_CHECKING:
    from jaxtyping import Bool
    from torch import Tensor


@final
@dataclass(frozen=True, kw_only=True)
class MapScores:
    """Measures the maps of each image by every metric and aggregate."""

    explains: ClassVar[bool] = True

    def __call__(
        self, encoder: Encoder, method: Method, tasks: Iterable[Task], *, seed: int
    ) -> Iterator[tuple[ImageTag, Measured]]:
        for answer in method.answers(encoder, tasks, seed=seed):
            subject, result = answer.task.tag, answer.result
            if isinstance(result, Explanation):
                scores = score_maps(result.maps, subject.segmentation)
                measured = Measured(scores=scores, calls=answer.calls, seconds=answer.seconds, explanation=result)
            else:
                measured = measured_without_image(subject, result)
            yield subject, measured


def score_maps(stored: Mapping[str, Tensor], segmentation: Bool[Tensor, "height width"] | None) -> dict[str, float]:
    """Return the value of every metric and aggregate on every map, as `METRIC.MAP`.

    `vote_share` and `vote_variance` are importance and uncertainty with binary votes of the same repeats. A value that
    is undefined is NaN, and not left out, so that a row shows which metrics were known when it was made.
    """
    maps = {kind: values for kind, values in stored.items() if kind != "effect"}  # no metric judges it
    if (share := stored.get("vote_share")) is not None:
        maps["vote_variance"] = share * (1 - share)
    metrics = map_metrics()
    names = [*metrics, "resolved_entropy", *AGGREGATES]
    undefined = {f"{name}.{kind}": math.nan for name in names for kind in ("importance", "uncertainty", *maps)}
    stack = torch.stack(list(maps.values()))
    columns = {name: metric(stack) for name, metric in metrics.items() if metric.needs == "map"}
    columns["resolved_entropy"] = resolved_entropy(stack)
    columns |= {name: aggregate(stack) for name, aggregate in AGGREGATES.items()}
    for metric in metrics.values():
        if segmentation is not None and metric.needs == "segmentation":
            with suppress(ConfigurationError):  # the maps may have fewer pixels than the metric counts
                columns[metric.name] = metric(stack, segmentation.expand_as(stack))
    return undefined | {
        f"{name}.{kind}": value
        for name, column in columns.items()
        for kind, value in zip(maps, column.tolist(), strict=True)
    }
