"""Metrics of maps, of encoders and methods, and of sets of images: functions, and a registry that describes them."""

from repeat_xai.metrics.calibration import Calibration, calibration
from repeat_xai.metrics.complexity import complexity, effective_complexity, histogram_entropy, sparseness
from repeat_xai.metrics.emprt import emprt
from repeat_xai.metrics.faithfulness import Curve, deletion, insertion
from repeat_xai.metrics.localisation import attribution_mass, pointing_game, relevance_rank, top_k_intersection
from repeat_xai.metrics.map_arrays import segmentation_of_boxes
from repeat_xai.metrics.map_similarity import spearman, ssim
from repeat_xai.metrics.metric import EncoderMetric, EncoderScore, MapMetric, Metric, SetMetric
from repeat_xai.metrics.metric_names import KINDS, METRICS, map_metrics
from repeat_xai.metrics.mprt import Mprt, mprt
from repeat_xai.metrics.randomisation import randomise_encoder, randomise_layer_by_layer
from repeat_xai.metrics.robustness import local_lipschitz, max_sensitivity
from repeat_xai.metrics.statistics import Comparison, Summary, compare_with_baseline, summary

__all__ = [
    "KINDS",
    "METRICS",
    "Calibration",
    "Comparison",
    "Curve",
    "EncoderMetric",
    "EncoderScore",
    "MapMetric",
    "Metric",
    "Mprt",
    "SetMetric",
    "Summary",
    "attribution_mass",
    "calibration",
    "compare_with_baseline",
    "complexity",
    "deletion",
    "effective_complexity",
    "emprt",
    "histogram_entropy",
    "insertion",
    "local_lipschitz",
    "map_metrics",
    "max_sensitivity",
    "mprt",
    "pointing_game",
    "randomise_encoder",
    "randomise_layer_by_layer",
    "relevance_rank",
    "segmentation_of_boxes",
    "sparseness",
    "spearman",
    "ssim",
    "summary",
    "top_k_intersection",
]
