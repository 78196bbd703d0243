"""Tests of evaluations: what is refused, and which sheets and columns the metrics ask for."""

import pytest

import repeat_xai as rx
from repeat_xai.experiments.evaluation import Evaluation
from repeat_xai.experiments.measures import metrics_with_draws
from repeat_xai.metrics import METRICS, SetMetric
from repeat_xai.metrics.detection import CODE_SCORES

METHODS = {"repeat": rx.Repeat(), "relax": rx.Relax()}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"metrics": ("ood",)}, "against"),
        ({"metrics": ("poison",), "against": ("cifar10+tap",)}, "cifar10"),
        ({"dataset": "cifar10", "metrics": ("poison",), "against": ("eurosat",)}, "cifar10"),
        ({"against": ("folder/voc",)}, "same name"),
        ({"baseline": "lime"}, "baseline"),
        ({"aggregate": "most"}, "aggregate"),
        ({"methods": {"relax": rx.Relax()}, "metrics": ("calibration",)}, "votes"),
        ({"runs": 0}, "runs"),
        ({"draws": 0}, "draws"),
    ],
)
def test_an_impossible_evaluation_is_refused_without_naming_options_of_the_command(options, word):
    with pytest.raises(rx.errors.ConfigurationError, match=word) as refused:
        Evaluation(**{"dataset": "voc", "methods": METHODS} | options)
    assert "--" not in str(refused.value)


def test_the_main_table_comes_before_those_of_metrics_with_tables_of_their_own():
    metrics = ("codes", "complexity", "poison", "ood")
    evaluation = Evaluation(dataset="cifar10", against=("cifar10+tap",), methods=METHODS, metrics=metrics)
    main, codes, poison = evaluation.sheets
    assert (main.name, codes.name, poison.name) == ("evaluation", "codes", "poison-tap")
    assert [column.title for column in main.columns] == [
        "complexity (I)",
        "complexity (U)",
        "AUROC against cifar10+tap (U)",
        "AUROC of the mixture against cifar10+tap (U)",
        "AUPR against cifar10+tap (U)",
        "FPR at 95 % against cifar10+tap (U)",
    ]
    assert [label for _, label in main.contents] == ["repeat", "repeat, binary votes", "relax"]
    assert [column.code_score for column in codes.columns] == list(CODE_SCORES)
    assert [label for _, label in codes.contents] == ["codes"]
    assert list(poison.contents)[:2] == [
        ("efficientnet_lite0", "repeat, importance"),
        ("efficientnet_lite0", "repeat, uncertainty"),
    ]
    assert [content.map_name for content in poison.contents.values()] == 3 * ["importance", "uncertainty"]


def test_several_runs_add_a_column_to_each_column():
    evaluation = Evaluation(dataset="voc", methods=METHODS, metrics=("emprt",), runs=3)
    (sheet,) = evaluation.sheets
    assert [column.title for column in sheet.columns] == [
        "eMPRT (I)",
        "eMPRT (U)",
        "eMPRT (I), 3 runs",
        "eMPRT (U), 3 runs",
    ]
    assert sorted({setting.seed for setting in sheet.settings}) == [0, 1, 2]


def test_tables_show_no_folders_of_the_machine():
    evaluation = Evaluation(
        dataset="/home/ann/cats", against=("/home/ann/dogs",), methods=METHODS, metrics=("ood", "codes")
    )
    titles = [title for sheet in evaluation.sheets for title in (sheet.title, *(c.title for c in sheet.columns))]
    assert not [title for title in titles if "/" in title]
    assert titles[:2] == ["Methods on cats", "AUROC against dogs (U)"]


def test_a_metric_of_sets_without_columns_is_refused(monkeypatch):
    monkeypatch.setitem(METRICS, "distance", SetMetric(name="distance", better="higher"))
    with pytest.raises(rx.errors.ConfigurationError, match="columns"):
        Evaluation(dataset="voc", against=("eurosat",), methods=METHODS, metrics=("distance",))


def test_the_metrics_with_draws_are_those_that_have_the_option(monkeypatch):
    assert metrics_with_draws() == {"local_lipschitz", "max_sensitivity"}
    monkeypatch.delitem(METRICS, "max_sensitivity")
    assert metrics_with_draws() == {"local_lipschitz"}
