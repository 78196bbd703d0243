"""Several photos by several methods: importance above uncertainty, a column a method."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from repeat_xai.errors import ConfigurationError
from repeat_xai.output.figures.canvas import HEAD, MARGIN, NOTE, WIDE, Canvas, height_of
from repeat_xai.output.figures.captions import title
from repeat_xai.output.figures.explanation_maps import draw_bare, draw_importance, draw_uncertainty
from repeat_xai.types import Explanation

GAP, BETWEEN, ASIDE = 0.05, 0.14, 0.16
WORDS = {"Guided backpropagation": "Guided backprop.", "Integrated gradients": "Integrated grad."}
"""As short as a column is wide."""


def examples(photos: Sequence[Sequence[Explanation]], *, note: str) -> Figure:
    """For each photo what every method says of it; every map is on its own scale, those of votes on 0 to 1 and ¼."""
    if not photos or not photos[0]:
        raise ConfigurationError("there are no explanations to draw")
    methods = len(photos[0])
    wide = (WIDE - 2 * MARGIN - ASIDE - methods * GAP) / (methods + 1)
    talls = [height_of(row[0].photo, wide) for row in photos]
    blocks = [2 * tall + GAP for tall in talls]
    canvas = Canvas.of(WIDE, HEAD + 0.04 + sum(blocks) + BETWEEN * (len(photos) - 1) + 0.06 + NOTE)
    lefts = [MARGIN + wide + ASIDE + GAP + (wide + GAP) * place for place in range(methods)]
    for left, explanation in zip(lefts, photos[0], strict=True):
        words = title(explanation)
        canvas.text(left + wide / 2, HEAD / 2 + 0.02, WORDS.get(words, words))
    top = HEAD + 0.04
    for row, tall, block in zip(photos, talls, blocks, strict=True):
        draw_bare(canvas.axes(MARGIN, top + (block - tall) / 2, wide, tall), row[0].photo)
        for line, (name, draw) in enumerate((("importance", draw_importance), ("uncertainty", draw_uncertainty))):
            here = top + line * (tall + GAP)
            canvas.aside(MARGIN + wide + (ASIDE + GAP) / 2, here + tall / 2, name)
            for left, explanation in zip(lefts, row, strict=True):
                draw(canvas.axes(left, here, wide, tall), explanation)
        top += block + BETWEEN
    canvas.note(note)
    return canvas.figure
