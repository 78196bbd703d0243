"""A folder of images → its two ends, and where all of them lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from repeat_xai.metrics.detection import Mixture
from repeat_xai.output.figures.captions import short_name
from repeat_xai.types import Photo


def contact_sheet(
    most: Sequence[tuple[Photo, float]],
    least: Sequence[tuple[Photo, float]],
    scores: Sequence[float],
    split: Mixture | None,
) -> Figure:
    """The most and the least uncertain images, and where all of them lie."""
    columns = len(most)
    figure = Figure(figsize=(1.7 * columns + 0.4, 6.2), layout="constrained")
    grid = figure.add_gridspec(3, columns, height_ratios=(1, 1, 1.1))
    for row, (name, some) in enumerate((("most uncertain", most), ("least uncertain", least))):
        for column, (photo, score) in enumerate(some):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(photo.picture)
            axes.set(xticks=[], yticks=[])
            axes.set_title(f"{short_name(photo, 18)}\n{score:.4g}", fontsize=7, parse_math=False)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
    below = figure.add_subplot(grid[2, :])
    below.hist(scores, bins=min(40, max(5, len(scores) // 4)), density=True, color="#B0B0B0")
    if split is not None and split.separates:
        for kind, colour in enumerate(("#0072B2", "#D55E00")):
            places = split.means[kind] + split.deviations[kind] * np.linspace(-4, 4, 200)
            below.plot(places, split.density(places, kind), color=colour, linewidth=1.5)
    below.set(xlabel="uncertainty of an image", yticks=[])
    below.spines[["top", "left", "right"]].set_visible(False)
    figure.suptitle(split.statement if split else f"{len(scores)} images", fontsize=9, color="#444444")
    return figure
