"""Figures of explanations and of scores, in colours that the colour-blind tell apart.

The functions draw what they are given and compute nothing. `save_figure` writes what they return to a file.
"""

from repeat_xai.output.figures.captions import title
from repeat_xai.output.figures.contact_sheet import contact_sheet
from repeat_xai.output.figures.curves import histograms, histograms_by_method, reliability, roc, similarities
from repeat_xai.output.figures.explanation_figures import comparison, panel
from repeat_xai.output.figures.figure_files import save_figure
from repeat_xai.output.figures.match_figure import match_figure

__all__ = [
    "comparison",
    "contact_sheet",
    "histograms",
    "histograms_by_method",
    "match_figure",
    "panel",
    "reliability",
    "roc",
    "save_figure",
    "similarities",
    "title",
]
