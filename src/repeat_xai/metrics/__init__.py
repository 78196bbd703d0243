"""Judging maps, one metric a file: pure functions, with direction and origin as data."""

from repeat_xai.metrics.attribution_mass import ATTRIBUTION_MASS, attribution_mass
from repeat_xai.metrics.calibration import Calibration, calibration
from repeat_xai.metrics.complexity import COMPLEXITY, complexity
from repeat_xai.metrics.deletion import Curve, deletion
from repeat_xai.metrics.effective_complexity import EFFECTIVE_COMPLEXITY, effective_complexity
from repeat_xai.metrics.emprt import emprt
from repeat_xai.metrics.histogram_entropy import HISTOGRAM_ENTROPY, histogram_entropy
from repeat_xai.metrics.local_lipschitz import local_lipschitz
from repeat_xai.metrics.max_sensitivity import max_sensitivity
from repeat_xai.metrics.metric import Metric, boxed
from repeat_xai.metrics.mprt import Mprt, mprt
from repeat_xai.metrics.pointing_game import POINTING_GAME, pointing_game
from repeat_xai.metrics.randomisation import forgetting, randomised
from repeat_xai.metrics.relevance_rank import RELEVANCE_RANK, relevance_rank
from repeat_xai.metrics.sparseness import SPARSENESS, sparseness
from repeat_xai.metrics.spearman import spearman
from repeat_xai.metrics.ssim import ssim
from repeat_xai.metrics.statistics import Comparison, Summary, compared, summary
from repeat_xai.metrics.top_k import TOP_K_INTERSECTION, top_k_intersection

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        COMPLEXITY,
        SPARSENESS,
        HISTOGRAM_ENTROPY,
        EFFECTIVE_COMPLEXITY,
        TOP_K_INTERSECTION,
        POINTING_GAME,
        RELEVANCE_RANK,
        ATTRIBUTION_MASS,
    )
}

__all__ = [
    "METRICS",
    "Calibration",
    "Comparison",
    "Curve",
    "Metric",
    "Mprt",
    "Summary",
    "attribution_mass",
    "boxed",
    "calibration",
    "compared",
    "complexity",
    "deletion",
    "effective_complexity",
    "emprt",
    "forgetting",
    "histogram_entropy",
    "local_lipschitz",
    "max_sensitivity",
    "mprt",
    "pointing_game",
    "randomised",
    "relevance_rank",
    "sparseness",
    "spearman",
    "ssim",
    "summary",
    "top_k_intersection",
]
