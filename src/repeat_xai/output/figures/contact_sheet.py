"""A contact sheet of a screened folder: its most and its least uncertain images, and the scores of all."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from repeat_xai.errors import in_one_line
from repeat_xai.metrics.detection import Mixture
from repeat_xai.output.figures.figure_files import SilentFigure
from repeat_xai.types import Photo

NAME_WIDTH = 22
"""Letters in a line of a name; longer names have several lines."""
LINE_HEIGHT = 0.12
"""Inches that each further line of a name adds to the height of the sheet."""


def contact_sheet(
    most_uncertain: Sequence[tuple[Photo, float]],
    least_uncertain: Sequence[tuple[Photo, float]],
    scores: Sequence[float],
    mixture: Mixture | None,
) -> Figure:
    """Draw the most and the least uncertain images with their names and scores, and a histogram of all scores."""
    columns = len(most_uncertain)
    rows = [
        [(photo, f"{_wrapped_name(photo)}\n{score:.4g}") for photo, score in images]
        for images in (most_uncertain, least_uncertain)
    ]
    further_lines = sum(max(label.count("\n") for _, label in row) - 1 for row in rows)
    size = (1.7 * columns + 0.4, 6.2 + LINE_HEIGHT * further_lines)
    figure = SilentFigure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(3, columns, height_ratios=(1, 1, 1.1))
    for number, (name, row) in enumerate(zip(("most uncertain", "least uncertain"), rows, strict=True)):
        for column, (photo, label) in enumerate(row):
            axes = figure.add_subplot(grid[number, column])
            axes.imshow(photo.picture)
            axes.set(xticks=[], yticks=[])
            axes.set_title(label, fontsize=7, parse_math=False)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
    histogram = figure.add_subplot(grid[2, :])
    histogram.hist(scores, bins=min(40, max(5, len(scores) // 4)), density=True, color="#B0B0B0")
    if mixture is not None and mixture.separates:
        for kind, colour in enumerate(("#0072B2", "#D55E00")):
            places = mixture.means[kind] + mixture.deviations[kind] * np.linspace(-4, 4, 200)
            histogram.plot(places, mixture.density(places, kind), color=colour, linewidth=1.5)
    histogram.set(xlabel="uncertainty of an image", yticks=[])
    histogram.spines[["top", "left", "right"]].set_visible(False)
    figure.suptitle(mixture.statement if mixture else f"{len(scores)} images", fontsize=9, color="#444444")
    return figure


def _wrapped_name(photo: Photo) -> str:
    """Return the whole file name of a photo, in as many lines as it needs."""
    name = in_one_line(Path(photo.name).name)
    wide = any(unicodedata.east_asian_width(letter) in "WF" for letter in name)  # a wide letter takes twice the room
    return textwrap.fill(name, NAME_WIDTH // 2 if wide else NAME_WIDTH)
