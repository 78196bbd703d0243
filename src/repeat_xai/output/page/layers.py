"""An explanation → what can be laid over its photo, each with its colours, scale, histogram and cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.output.figures.map_drawing import UNCERTAINTY, robust_limits, scale
from repeat_xai.types import Explanation

Kind = Literal["importance", "uncertainty", "certainty"]
Range = tuple[float, float]
Marks = tuple[tuple[float, str], ...]
"""Values, and what is written there."""
SHARE = (0.0, 1.0)
RELIES = "How much the representation depends on the pixel, in the method's own unit."
UNKNOWN = "The method does not say how sure it is."
AGREES = "0 where the repeats agree, 0.25 where they are split evenly."
VERDICTS = ((-1.0, "certainly unimportant"), (0.0, "undecided"), (1.0, "certainly important"))


@final
@dataclass(frozen=True, kw_only=True)
class Layer:
    """One map over the photo."""

    kind: Kind
    label: str
    title: str
    note: str
    map: str
    """The name of the map that is coloured."""
    where: str | None = None
    """The name of a map that is 1 where the layer is drawn, if that is not everywhere."""
    colours: str
    limits: Range
    ticks: Marks
    counted: str
    """The name of the map whose histogram is drawn."""
    counted_title: str
    range: Range
    """Of that histogram."""
    cuts: Marks = ()


def layers(explanation: Explanation, *, level: float) -> tuple[Layer, Layer, Layer]:
    """Importance, uncertainty and what of it is certain."""
    importance, uncertainty = _importance(explanation, level), _uncertainty(explanation)
    return importance, uncertainty, _verdict(level) if _votes(explanation) else _certain(importance)


def _importance(explanation: Explanation, level: float) -> Layer:
    votes = _votes(explanation)
    colours, limits = scale(explanation.importance, votes=votes)
    binary = votes and explanation.provenance["method"].get("votes") == "binary"
    share = "Share of repeats that call the pixel important" + ("." if binary else ", each vote weighted.")
    return Layer(
        kind="importance",
        label="Importance",
        title="importance p" if votes else "importance R",
        note=share if votes else RELIES + _beyond(explanation.importance, limits),
        map="importance",
        colours=colours,
        limits=limits,
        ticks=_ticks(limits),
        counted="importance",
        counted_title="importance p" if votes else "importance R",
        range=limits,
        cuts=_cuts(level) if binary else (),
    )


def _uncertainty(explanation: Explanation) -> Layer:
    votes, unknown = _votes(explanation), bool(explanation.uncertainty.isnan().all())
    limits = (0.0, 0.25) if votes else SHARE if unknown else robust_limits(explanation.uncertainty)
    median = explanation.uncertainty.median().item()
    varies = UNKNOWN if unknown else "How much the importance varies." + _beyond(explanation.uncertainty, limits)
    return Layer(
        kind="uncertainty",
        label="Uncertainty",
        title="uncertainty p(1 − p)" if votes else "uncertainty U",
        note=AGREES if votes else varies,
        map="uncertainty",
        colours=UNCERTAINTY,
        limits=limits,
        ticks=_ticks(limits),
        counted="uncertainty",
        counted_title="uncertainty U",
        range=limits,
        cuts=() if votes or unknown else ((median, "median"),),
    )


def _verdict(level: float) -> Layer:
    share = f"{100 * level:g} %"
    return Layer(
        kind="certainty",
        label="Verdict",
        title=f"verdict at {share} of the votes",
        note=f"Certain where at least {share} of the repeats agree, with every vote counted alike.",
        map="verdict",
        colours="verdict",
        limits=(-1.5, 1.5),
        ticks=VERDICTS,
        counted="vote_share",
        counted_title="share of votes",
        range=SHARE,
        cuts=_cuts(level),
    )


def _certain(importance: Layer) -> Layer:
    return Layer(
        kind="certainty",
        label="Certain part",
        title="importance where U ≤ median",
        note="The half of the pixels whose uncertainty is at most its median.",
        map="importance",
        where="certain",
        colours=importance.colours,
        limits=importance.limits,
        ticks=importance.ticks,
        counted="importance",
        counted_title="importance R, where certain",
        range=importance.range,
    )


def _votes(explanation: Explanation) -> bool:
    return explanation.vote_share is not None


def _cuts(level: float) -> Marks:
    return ((1 - level, f"{1 - level:.3g}"), (level, f"{level:.3g}"))


def _ticks(limits: Range) -> Marks:
    low, high = limits
    if not low < high:
        return ((low, f"{low:.3g}"),)
    return tuple((float(v), f"{v:.3g}") for v in MaxNLocator(5).tick_values(low, high) if low <= v <= high)


def _beyond(values: Tensor, limits: Range) -> str:
    """What is said where the scale leaves out a few extreme pixels."""
    low, high = values.min().item(), values.max().item()
    return f" It reaches from {low:.3g} to {high:.3g}." if low < limits[0] or high > limits[1] else ""
