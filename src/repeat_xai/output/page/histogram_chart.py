"""Scores of many images → their histogram with the mixture drawn on it, as coordinates for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.ticker import MaxNLocator

from repeat_xai.metrics.detection import Mixture

WIDTH, HEIGHT = 720.0, 180.0


@final
@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bin: how many images of the folder, and on top of them how many of the reference."""

    left: float
    width: float
    height: float
    above: float
    title: str


@final
@dataclass(frozen=True, kw_only=True)
class Chart:
    """The histogram, in units of its picture."""

    bars: Sequence[Bar]
    curves: Sequence[str]
    """The components of the mixture as paths, the known one first; none where it does not separate."""
    ticks: Sequence[tuple[float, str]]
    cut: tuple[float, str] | None
    """Where both components are as likely."""
    reference: bool


def chart(scores: Sequence[float], reference: Sequence[float], split: Mixture | None) -> Chart:
    """Bars are counts; a curve is how many images a bin would hold."""
    together = np.array([*scores, *reference])
    low, high = together.min(), together.max()
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    ends = low - margin, high + margin
    edges = np.linspace(*ends, min(40, max(5, len(together) // 4)) + 1)
    found, known = (np.histogram(values, edges)[0] for values in (scores, reference))
    places = np.linspace(*ends, 241)
    curves = []
    if split is not None and split.separates:
        expected = len(together) * (edges[1] - edges[0])
        curves = [expected * split.density(places, kind) for kind in (0, 1)]
    most = max((found + known).max(), *(curve.max() for curve in curves), 1)
    x = np.interp(places, ends, (0, WIDTH))
    cut = split.threshold if split is not None and split.separates else None
    return Chart(
        bars=[
            Bar(
                left=float(np.interp(edges[i], ends, (0, WIDTH))),
                width=WIDTH / (len(edges) - 1),
                height=HEIGHT * float(found[i] / most),
                above=HEIGHT * float(known[i] / most),
                title=_told(edges[i], edges[i + 1], int(found[i]), int(known[i]), reference=bool(reference)),
            )
            for i in range(len(found))
        ],
        curves=[_path(x, HEIGHT * (1 - curve / most)) for curve in curves],
        ticks=[(_place(v, ends), f"{v:.4g}") for v in MaxNLocator(6).tick_values(*ends) if ends[0] <= v <= ends[1]],
        cut=None if cut is None else (_place(cut, ends), f"{cut:.4g}"),
        reference=bool(reference),
    )


def _place(value: float, ends: tuple[float, float]) -> float:
    return round(float(np.interp(value, ends, (0, WIDTH))), 2)


def _told(low: float, high: float, found: int, known: int, *, reference: bool) -> str:
    beside = f", {known} of the reference" if reference else ""
    return f"{low:.4g} to {high:.4g}: {found} images{beside}"


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
