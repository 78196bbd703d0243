"""The registry: every metric is described and listed. A test of the documentation compares its tables."""

from dataclasses import fields, is_dataclass

import pytest

from repeat_xai.metrics import KINDS, METRICS, EncoderMetric, MapMetric, map_metrics


def test_the_metrics_of_each_kind():
    """The names are part of the command and of stored rows."""
    kinds = {kind: [name for name, metric in METRICS.items() if isinstance(metric, kind)] for kind in KINDS}
    assert [sorted(names) for names in kinds.values()] == [
        [
            "attribution_mass",
            "complexity",
            "effective_complexity",
            "histogram_entropy",
            "pointing_game",
            "relevance_rank",
            "sparseness",
            "top_k_intersection",
        ],
        ["calibration", "deletion", "emprt", "insertion", "local_lipschitz", "max_sensitivity", "mprt"],
        ["codes", "ood", "poison"],
    ]
    assert list(METRICS) == [name for names in kinds.values() for name in names], "listed by kind"
    assert list(map_metrics()) == kinds[MapMetric]


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_described(name):
    metric = METRICS[name]
    assert metric.name == name
    assert metric.better in ("higher", "lower", "neither")
    assert metric.needs
    assert metric.description
    assert "\n" not in metric.description
    if isinstance(metric, MapMetric):
        assert metric.function.__name__ == name
        assert metric.citation
    if isinstance(metric, EncoderMetric):
        assert is_dataclass(metric.score)
        assert all(field.kw_only for field in fields(metric.score))
        hash(metric.score)  # the settings of rows are keys of dictionaries
        assert metric.citation
