"""Judging a dataset: which of its images does the encoder not know?"""

from repeat_xai.metrics.detection.aggregates import AGGREGATES
from repeat_xai.metrics.detection.code_scores import BASELINES, density, mahalanobis, nearest
from repeat_xai.metrics.detection.interval import bootstrapped
from repeat_xai.metrics.detection.mixture import Mixture, mixture
from repeat_xai.metrics.detection.poison_detection import Detection, detection
from repeat_xai.metrics.detection.quality import Quality, Roc, quality, roc

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
