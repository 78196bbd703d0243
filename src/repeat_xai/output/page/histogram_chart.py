"""The histogram of many images' scores, with the mixture drawn on it, as coordinates of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.ticker import MaxNLocator

from repeat_xai.metrics.detection import Mixture

WIDTH, HEIGHT = 720.0, 180.0
"""Width and height of the chart, in units of its picture."""
MAX_BINS, MIN_BINS, IMAGES_PER_BIN = 40, 5, 4
CURVE_POINTS = 241
Tick = tuple[float, str]
"""A place on an axis, and the number that is written there."""


@final
@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bin: a bar for the images, and on top of it a bar for the reference images."""

    left: float
    width: float
    height: float
    reference_height: float
    title: str
    """The range of scores and the number of images, in words."""


@final
@dataclass(frozen=True, kw_only=True)
class Chart:
    """The histogram, in units of its picture."""

    bars: Sequence[Bar]
    curves: Sequence[str]
    """The two components of the mixture as SVG paths, the more certain one first; none if it does not separate."""
    ticks: Sequence[Tick]
    """Scores along the horizontal axis."""
    count_ticks: Sequence[Tick]
    """Numbers of images along the vertical axis, by their distance from the top."""
    cut: Tick | None
    """The score at which both components are equally likely."""
    has_reference: bool


def score_chart(scores: Sequence[float], reference: Sequence[float], mixture: Mixture | None) -> Chart:
    """Return the histogram of the scores; its curves say how many images the mixture expects in a bin."""
    together = np.array([*scores, *reference])
    low, high = together.min(), together.max()
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    ends = low - margin, high + margin
    edges = np.linspace(*ends, min(MAX_BINS, max(MIN_BINS, len(together) // IMAGES_PER_BIN)) + 1)
    counts, above = (np.histogram(values, edges)[0] for values in (scores, reference))
    points = np.linspace(*ends, CURVE_POINTS)
    separates = mixture is not None and mixture.separates
    curves = []
    if mixture is not None and separates:
        expected = len(together) * (edges[1] - edges[0])
        curves = [expected * mixture.density(points, component) for component in (0, 1)]
    top = max((counts + above).max(), *(curve.max() for curve in curves), 1)
    x = np.interp(points, ends, (0, WIDTH))
    cut = mixture.threshold if mixture is not None and separates else None
    ticks, count_ticks = MaxNLocator(6).tick_values(*ends), MaxNLocator(4, integer=True).tick_values(0, top)
    return Chart(
        bars=[
            Bar(
                left=float(np.interp(edges[i], ends, (0, WIDTH))),
                width=WIDTH / (len(edges) - 1),
                height=HEIGHT * float(counts[i] / top),
                reference_height=HEIGHT * float(above[i] / top),
                title=_bin_title(edges[i], edges[i + 1], int(counts[i]), int(above[i]) if reference else None),
            )
            for i in range(len(counts))
        ],
        curves=[_svg_path(x, HEIGHT * (1 - curve / top)) for curve in curves],
        ticks=[(_position(v, ends), f"{v:.4g}") for v in ticks if ends[0] <= v <= ends[1]],
        count_ticks=[(round(HEIGHT * float(1 - v / top), 2), f"{v:.0f}") for v in count_ticks if 0 <= v <= top],
        cut=None if cut is None else (_position(cut, ends), f"{cut:.4g}"),
        has_reference=bool(reference),
    )


def _position(value: float, ends: tuple[float, float]) -> float:
    """Return the distance of a score from the left edge."""
    return round(float(np.interp(value, ends, (0, WIDTH))), 2)


def _bin_title(low: float, high: float, images: int, reference: int | None) -> str:
    beside = "" if reference is None else f", {reference} of the reference"
    return f"{low:.4g} to {high:.4g}: {images} {'image' if images == 1 else 'images'}{beside}"


def _svg_path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
