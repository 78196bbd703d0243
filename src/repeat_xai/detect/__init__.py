"""Judging a dataset: which of its images does the encoder not know?"""

from repeat_xai.detect.aggregate import AGGREGATES
from repeat_xai.detect.codes import BASELINES, density, mahalanobis, nearest
from repeat_xai.detect.mixture import Mixture, mixture
from repeat_xai.detect.quality import Quality, quality

__all__ = [
    "AGGREGATES",
    "BASELINES",
    "Mixture",
    "Quality",
    "density",
    "mahalanobis",
    "mixture",
    "nearest",
    "quality",
]
