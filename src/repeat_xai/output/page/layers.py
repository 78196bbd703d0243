"""The layers that a page can draw over a photo: importance, uncertainty, and what is certain of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from matplotlib.ticker import MaxNLocator
from torch import Tensor

from repeat_xai.output.figures.map_drawing import (
    UNCERTAINTY,
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    importance_scale,
    uncertainty_limits,
)
from repeat_xai.types import Explanation

LayerKind = Literal["importance", "uncertainty", "certainty"]
Limits = tuple[float, float]
Labels = tuple[tuple[float, str], ...]
"""Values, each with the text that is written beside it."""
UNANIMOUS = 1 - 1e-6
"""Share of votes from which on all repeats agree that a pixel is important, up to rounding."""
NO_UNCERTAINTY = "This method does not say how uncertain its importance is."
VERDICTS = ((-1.0, "certainly unimportant"), (0.0, "undecided"), (1.0, "certainly important"))


@final
@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer over the photo, with its colour scale, its explanation in words and its histogram."""

    kind: LayerKind
    label: str
    """The text on the button that chooses the layer."""
    title: str
    note: str
    """What the colours mean, in one or a few sentences."""
    map: str
    """The name of the map that is drawn in colours."""
    where: str | None = None
    """The name of a map that is 1 where the layer is drawn; None if it is drawn everywhere."""
    colours: str
    limits: Limits
    ticks: Labels
    histogram_map: str
    """The name of the map whose histogram is drawn."""
    histogram_title: str
    histogram_limits: Limits
    cuts: Labels = ()
    """Lines across the histogram."""


def layers(explanation: Explanation, *, level: float) -> tuple[Layer, Layer, Layer]:
    """Return the layers for importance, for uncertainty, and for the verdict or, without votes, the certain half."""
    importance, uncertainty = _importance_layer(explanation, level), _uncertainty_layer(explanation)
    if explanation.vote_share is not None:
        return importance, uncertainty, _verdict_layer(level)
    return importance, uncertainty, _certain_half_layer(explanation, importance)


def _importance_layer(explanation: Explanation, level: float) -> Layer:
    colours, limits = importance_scale(explanation)
    title = "importance R" if explanation.vote_share is None else "importance p"
    binary = _has_binary_votes(explanation)
    if explanation.vote_share is None:
        note = "R says how much the representation depends on the pixel, in units of this method's own."
        note += _beyond_scale(explanation.importance, limits)
    elif binary:
        note = "p is the share of the repeats that call the pixel important: 0 is none of them, 1 is all of them."
    else:
        note = (
            "p is the share of the repeats that call the pixel important. Each vote is weighted by how important the "
            "pixel is in that repeat, so p is at most the plain share of votes."
        )
    return Layer(
        kind="importance",
        label="Importance",
        title=title,
        note=note,
        map="importance",
        colours=colours,
        limits=limits,
        ticks=_ticks(limits),
        histogram_map="importance",
        histogram_title=title,
        histogram_limits=limits,
        cuts=_verdict_cuts(level) if binary else (),
    )


def _uncertainty_layer(explanation: Explanation) -> Layer:
    values = explanation.uncertainty
    cuts: Labels = ()
    limits = VOTE_SHARE_LIMITS if values is None else uncertainty_limits(explanation)
    if values is None:
        note = NO_UNCERTAINTY
    elif explanation.vote_share is not None:
        note = _vote_uncertainty_note(explanation.vote_share, values, binary=_has_binary_votes(explanation))
    else:
        note = (
            f"U says how much the pixel's importance varies. It has no upper limit; here its maximum is "
            f"{values.max().item():.3g}.{_beyond_scale(values, limits)}"
        )
        cuts = ((values.median().item(), "median"),)
    return Layer(
        kind="uncertainty",
        label="Uncertainty",
        title="uncertainty U" if explanation.vote_share is None else "uncertainty U = p(1 − p)",
        note=note,
        map="uncertainty",
        colours=UNCERTAINTY,
        limits=limits,
        ticks=_ticks(limits),
        histogram_map="uncertainty",
        histogram_title="uncertainty U",
        histogram_limits=limits,
        cuts=cuts,
    )


def _vote_uncertainty_note(vote_share: Tensor, uncertainty: Tensor, *, binary: bool) -> str:
    """Return what the uncertainty of votes says, with its largest value and its value where all repeats agree."""
    limit = f"It can be at most {VOTE_VARIANCE_LIMITS[1]:g}; here its maximum is {uncertainty.max().item():.3g}. "
    if binary:
        return limit + "It is 0 where all repeats agree, and largest where half of them call the pixel important."
    note = limit + "It is 0 where no repeat calls the pixel important."
    unanimous = uncertainty[vote_share >= UNANIMOUS]
    if not len(unanimous):
        return note + " Where all repeats do, it can be above 0 too, because votes are weighted and p may be below 1."
    return (
        f"{note} Where all repeats do, it is up to {unanimous.max().item():.2g}, because votes are weighted and p may "
        "be below 1."
    )


def _verdict_layer(level: float) -> Layer:
    return Layer(
        kind="certainty",
        label="Verdict",
        title=f"verdict at {100 * level:g} % of the votes",
        note=(
            f"Certainly important: at least {100 * level:g}\u00a0% of the repeats call the pixel important. "
            f"Certainly unimportant: at most {100 * (1 - level):.3g}\u00a0% do. Undecided: anything between. "
            "Votes are not weighted here."
        ),
        map="verdict",
        colours="verdict",
        limits=(-1.5, 1.5),
        ticks=VERDICTS,
        histogram_map="vote_share",
        histogram_title="share of votes",
        histogram_limits=VOTE_SHARE_LIMITS,
        cuts=_verdict_cuts(level),
    )


def _certain_half_layer(explanation: Explanation, importance: Layer) -> Layer:
    values = explanation.uncertainty
    if values is None:
        note = f"{NO_UNCERTAINTY} So nothing is drawn here."
    else:
        note = (
            "This method casts no votes, so it gives no verdict. The picture shows the importance of the half of the "
            f"pixels with the lower uncertainty: at most {values.median().item():.3g}, its median."
        )
    return Layer(
        kind="certainty",
        label="More certain half",
        title="importance where U is at most its median",
        note=note,
        map="importance",
        where="certain",
        colours=importance.colours,
        limits=importance.limits,
        ticks=importance.ticks,
        histogram_map="importance",
        histogram_title="importance R, more certain half",
        histogram_limits=importance.histogram_limits,
    )


def _has_binary_votes(explanation: Explanation) -> bool:
    """Say whether importance is the plain share of votes, which is what verdicts are made of."""
    return explanation.vote_share is not None and explanation.provenance["method"].get("votes") == "binary"


def _verdict_cuts(level: float) -> Labels:
    """Return the shares of votes between which a pixel is undecided."""
    return ((1 - level, f"{1 - level:.3g}"), (level, f"{level:.3g}"))


def _ticks(limits: Limits) -> Labels:
    """Return round values along a scale."""
    low, high = limits
    if not low < high:
        return ((low, f"{low:.3g}"),)
    return tuple((float(v), f"{v:.3g}") for v in MaxNLocator(5).tick_values(low, high) if low <= v <= high)


def _beyond_scale(values: Tensor, limits: Limits) -> str:
    """Return a sentence on the values that lie beyond the colour scale, empty if there are none."""
    low, high = values.min().item(), values.max().item()
    if low >= limits[0] and high <= limits[1]:
        return ""
    return f" Values reach from {low:.3g} to {high:.3g}; those beyond the scale have the colour of its end."
