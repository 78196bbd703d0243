"""Judging sets of images: which of them does the encoder not know, and which are poisoned?"""

from repeat_xai.metrics.detection.aggregates import AGGREGATES
from repeat_xai.metrics.detection.code_scores import CODE_SCORES, density, mahalanobis, nearest
from repeat_xai.metrics.detection.mixture import Mixture, mixture
from repeat_xai.metrics.detection.poison_detection import PoisonDetection, detect_poison
from repeat_xai.metrics.detection.quality import Quality, Roc, bootstrap_interval, quality, roc

__all__ = [
    "AGGREGATES",
    "CODE_SCORES",
    "Mixture",
    "PoisonDetection",
    "Quality",
    "Roc",
    "bootstrap_interval",
    "density",
    "detect_poison",
    "mahalanobis",
    "mixture",
    "nearest",
    "quality",
    "roc",
]
