"""Explanations and scores → figures. Nothing is computed here; colours read the same to the colour-blind."""

from repeat_xai.output.figures.captions import title
from repeat_xai.output.figures.comparison import comparison
from repeat_xai.output.figures.contact_sheet import contact_sheet
from repeat_xai.output.figures.curves import histograms, histograms_by_method, reliability, roc, similarities
from repeat_xai.output.figures.panel import panel

__all__ = [
    "comparison",
    "contact_sheet",
    "histograms",
    "histograms_by_method",
    "panel",
    "reliability",
    "roc",
    "similarities",
    "title",
]
