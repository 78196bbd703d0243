"""Figures of a few photos with their maps: several methods side by side, and an image clean and poisoned."""

from __future__ import annotations

from matplotlib.figure import Figure

from repeat_xai.errors import ConfigurationError
from repeat_xai.experiments.paper.figure_data import ExplanationGrid, PoisonedPair
from repeat_xai.output.figures.captions import title
from repeat_xai.output.figures.map_drawing import (
    VOTE_SHARE_LIMITS,
    VOTE_VARIANCE_LIMITS,
    draw_importance,
    draw_photo,
    draw_uncertainty,
)
from repeat_xai.output.paper_figures.canvas import (
    BAR_HEIGHT,
    COLUMN_WIDTH,
    FULL_WIDTH,
    HEADING,
    HEADING_HEIGHT,
    MARGIN,
    NOTE_HEIGHT,
    Canvas,
    note_text,
    panel_height,
)

GAP, ROW_GAP, PAIR_GAP = 0.05, 0.14, 0.1
"""Inches between panels and between photos of a grid, and between the panels of a pair."""
LABEL_WIDTH, PAIR_LABEL_WIDTH = 0.16, 0.2
"""Inches for the vertical words beside the maps of a grid and of a pair."""
SHORT_TITLES = {"Guided backpropagation": "Guided backprop.", "Integrated gradients": "Integrated grad."}
"""Titles of methods that would be wider than their column."""
SCALES = "each map on its own scale, REPEAT's from 0 to 1 and from 0 to ¼"


def explanation_grid(grid: ExplanationGrid) -> Figure:
    """Draw every photo in a row, a column for each method: importance above, uncertainty below."""
    rows = grid.rows
    if not rows or not rows[0]:
        raise ConfigurationError("there are no explanations to draw")
    methods = len(rows[0])
    width = (FULL_WIDTH - 2 * MARGIN - LABEL_WIDTH - methods * GAP) / (methods + 1)
    heights = [panel_height(row[0].photo, width) for row in rows]
    row_heights = [2 * height + GAP for height in heights]
    body = sum(row_heights) + ROW_GAP * (len(rows) - 1)
    canvas = Canvas.of(FULL_WIDTH, HEADING_HEIGHT + 0.04 + body + 0.06 + NOTE_HEIGHT)
    lefts = [MARGIN + width + LABEL_WIDTH + GAP + (width + GAP) * column for column in range(methods)]
    for left, explanation in zip(lefts, rows[0], strict=True):
        name = title(explanation)
        canvas.text(left + width / 2, HEADING_HEIGHT / 2 + 0.02, SHORT_TITLES.get(name, name))
    top = HEADING_HEIGHT + 0.04
    for row, height, row_height in zip(rows, heights, row_heights, strict=True):
        photo_axes = canvas.axes(MARGIN, top + (row_height - height) / 2, width, height)
        draw_photo(photo_axes, row[0].photo, titled=False)
        for line, (name, draw) in enumerate((("importance", draw_importance), ("uncertainty", draw_uncertainty))):
            line_top = top + line * (height + GAP)
            canvas.vertical_text(MARGIN + width + (LABEL_WIDTH + GAP) / 2, line_top + height / 2, name)
            for left, explanation in zip(lefts, row, strict=True):
                draw(canvas.axes(left, line_top, width, height), explanation)
        top += row_height + ROW_GAP
    canvas.note(note_text(*grid.source, SCALES))
    return canvas.figure


def poisoned_pair(pair: PoisonedPair) -> Figure:
    """Draw image, importance and uncertainty, the clean image's above the poisoned one's, on the same scales."""
    width = (COLUMN_WIDTH - 2 * MARGIN - PAIR_LABEL_WIDTH - 2 * PAIR_GAP) / 3
    height = panel_height(pair.clean.photo, width)
    body = 2 * height + PAIR_GAP + BAR_HEIGHT + 0.04
    canvas = Canvas.of(COLUMN_WIDTH, HEADING_HEIGHT + 0.02 + body + NOTE_HEIGHT)
    lefts = [MARGIN + PAIR_LABEL_WIDTH + (width + PAIR_GAP) * column for column in range(3)]
    for left, name in zip(lefts, ("image", "importance", "uncertainty"), strict=True):
        canvas.text(left + width / 2, HEADING_HEIGHT / 2 + 0.02, name, size=HEADING)
    top = HEADING_HEIGHT + 0.02
    for name, explanation in (("clean", pair.clean), ("poisoned", pair.poisoned)):
        canvas.vertical_text(MARGIN + PAIR_LABEL_WIDTH / 2 - 0.03, top + height / 2, name)
        draw_photo(canvas.axes(lefts[0], top, width, height), explanation.photo, titled=False)
        importance = draw_importance(canvas.axes(lefts[1], top, width, height), explanation)
        uncertainty = draw_uncertainty(canvas.axes(lefts[2], top, width, height), explanation)
        top += height + PAIR_GAP
    votes = pair.poisoned.vote_share is not None
    for left, drawn, values, limits in (
        (lefts[1], importance, pair.poisoned.importance, VOTE_SHARE_LIMITS),
        (lefts[2], uncertainty, pair.poisoned.required_uncertainty, VOTE_VARIANCE_LIMITS),
    ):
        place = (left, top - PAIR_GAP + 0.05, width)
        canvas.colour_bar(drawn, values, place, list(limits) if votes else None)
    source = pair.source
    canvas.note(note_text(f"{source.dataset}, image {pair.clean.photo.name}", source.encoder, source.budget))
    return canvas.figure
