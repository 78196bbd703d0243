"""Judging a dataset: which of its images does the encoder not know?"""

from repeat_xai.detect.aggregate import AGGREGATES
from repeat_xai.detect.codes import BASELINES, density, mahalanobis, nearest
from repeat_xai.detect.interval import bootstrapped
from repeat_xai.detect.mixture import Mixture, mixture
from repeat_xai.detect.poison import Detection, detection
from repeat_xai.detect.quality import Quality, Roc, quality, roc

__all__ = [
    "AGGREGATES",
    "BASELINES",
    "Detection",
    "Mixture",
    "Quality",
    "Roc",
    "bootstrapped",
    "density",
    "detection",
    "mahalanobis",
    "mixture",
    "nearest",
    "quality",
    "roc",
]
