"""Explanations and scores → figures. Nothing is computed here; colours read the same to the colour-blind."""

from repeat_xai.plot.captions import title
from repeat_xai.plot.comparison import comparison
from repeat_xai.plot.curves import histograms, histograms_by_method, reliability, roc, similarities
from repeat_xai.plot.panel import panel
from repeat_xai.plot.sheet import contact_sheet

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
