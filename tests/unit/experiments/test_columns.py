"""Tests of the columns of tables, and of the measures whose scores they read, on rows with known numbers."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from stores import row, rows_of
from torch import nn

import repeat_xai as rx
from repeat_xai.experiments.columns import UNDEFINED, EmprtColumn, MeanColumn, RunsColumn
from repeat_xai.experiments.detection_columns import CodeDetectionColumn, DetectionColumn, PoisonColumn
from repeat_xai.experiments.map_scores import MapScores, score_maps
from repeat_xai.experiments.measures import Codes, EncoderScores, ImageTag
from repeat_xai.experiments.row_scores import LineContent
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.metrics import METRICS, EncoderMetric, map_metrics
from repeat_xai.metrics.detection import mixture, quality
from repeat_xai.types import Task

NEED_SEGMENTATIONS = tuple(name for name, metric in map_metrics().items() if metric.needs == "segmentation")
CONTENT = LineContent(Setting(dataset="known", method=rx.Relax()))
CONTENT_OF_BINARY_VOTES = CONTENT._replace(votes="binary")


def test_a_mean_leaves_out_undefined_scores_and_counts_them():
    rows = rows_of({("known", False, 0): [{"complexity.importance": v} for v in (1.0, 2.0, math.nan)] + [None]})
    cell = MeanColumn(metric="complexity").summarise(CONTENT, rows)
    assert (cell.mean, cell.images, cell.undefined) == (1.5, 2, 2)
    assert MeanColumn(metric="complexity").better == "lower"


def test_uncertainty_with_binary_votes_is_read_from_the_variance_of_votes():
    scores = {"complexity.uncertainty": 9.0, "complexity.vote_variance": 5.0}
    rows = rows_of({("known", False, 0): [scores] * 3})
    column = MeanColumn(metric="complexity", map_name="uncertainty")
    assert (column.summarise(CONTENT, rows).mean, column.summarise(CONTENT_OF_BINARY_VOTES, rows).mean) == (9.0, 5.0)


def test_emprt_is_the_mean_relative_change_of_the_images():
    trained, random = (
        [{"resolved_entropy.uncertainty": v} for v in values] for values in ((2.0, 4.0, 0.0), (3.0, 3.0, 1.0))
    )
    rows = rows_of({("known", False, 0): trained, ("known", True, 0): random})
    assert EmprtColumn().values(CONTENT, rows)[:2].tolist() == [0.5, -0.25]
    assert EmprtColumn().summarise(CONTENT, rows)._asdict() | {"low": 0, "high": 0, "deviation": 0} == {
        "mean": 0.125, "deviation": 0, "low": 0, "high": 0, "images": 2, "undefined": 1,
    }  # fmt: skip
    assert [s.encoder_spec.randomise for s in EmprtColumn(randomise="full").settings(CONTENT)] == [None, "full"]


def values(name, numbers):
    return [{name: float(v)} for v in numbers]


@pytest.fixture
def two_datasets():
    generator = torch.Generator().manual_seed(0)
    known, unknown = torch.rand(30, generator=generator), 0.4 + torch.rand(20, generator=generator)
    sets = {
        ("known", False, 0): values("mean.uncertainty", known),
        ("other", False, 0): values("mean.uncertainty", unknown),
    }
    return known.double(), unknown.double(), rows_of(sets)


@pytest.mark.parametrize("criterion", ["auroc", "aupr", "fpr95"])
def test_detection_is_the_quality_of_the_scores_with_an_interval(two_datasets, criterion):
    known, unknown, rows = two_datasets
    cell = DetectionColumn(against="other", criterion=criterion).summarise(CONTENT, rows)
    assert cell.mean == pytest.approx(getattr(quality(known, unknown), criterion), abs=1e-12)
    assert cell.low <= cell.mean <= cell.high
    assert cell.images == 50


def test_the_posterior_comes_from_the_mixture_of_both_datasets(two_datasets):
    known, unknown, rows = two_datasets
    split = mixture(torch.cat((known, unknown)), seed=0)
    expected = quality(split.posterior(known), split.posterior(unknown)).auroc
    assert DetectionColumn(against="other", criterion="posterior").summarise(CONTENT, rows).mean == pytest.approx(
        expected, abs=1e-9
    )


def test_detection_of_too_few_images_has_no_number_and_raises_no_error():
    sets = {("known", False, 0): values("mean.uncertainty", [1.0]), ("other", False, 0): [None, None]}
    cell = DetectionColumn(against="other").summarise(CONTENT, rows_of(sets))
    assert (cell.mean, cell.images, cell.undefined) == (None, 0, 2)
    sets["other", False, 0] = values("mean.uncertainty", [2.0])
    assert DetectionColumn(against="other", criterion="posterior").summarise(CONTENT, rows_of(sets)).mean is None
    assert PoisonColumn(against="other", share=0.5).summarise(CONTENT, rows_of(sets)).mean is None
    assert DetectionColumn(against="other").summarise(CONTENT, rows_of(sets)).mean == 1.0


def test_codes_are_compared_with_those_of_the_first_half_of_the_dataset():
    generator = torch.Generator().manual_seed(0)
    near, far = torch.randn(20, 3, generator=generator), torch.randn(6, 3, generator=generator)
    near[:, 0] += 10
    far[:, 1] += 10

    def rows(setting):
        assert isinstance(setting.measure, Codes)
        codes = near if setting.dataset == "known" else far
        return [row(str(n), code=tuple(code.tolist())) for n, code in enumerate(codes)]

    column = CodeDetectionColumn(against="other", code_score="nearest")
    known, unknown = column.scores(CONTENT, rows)
    assert (len(known), len(unknown)) == (10, 6)
    assert column.summarise(CONTENT, rows).mean == 1.0

    def rows_with_gaps(setting):
        return [None if int(row.key) % 5 == 0 else row for row in rows(setting)]

    cell = column.summarise(CONTENT, rows_with_gaps)
    assert (cell.images, cell.undefined) == (8 + 4, 4 + 2)


def test_poison_is_detected_by_the_map_that_the_line_is_about():
    sets = {
        ("known", False, 0): [{"mean.uncertainty": float(v), "mean.importance": float(v)} for v in range(20)],
        ("cifar10+x", False, 0): [{"mean.uncertainty": v + 100.0, "mean.importance": float(v)} for v in range(20)],
    }
    column = PoisonColumn(against="cifar10+x", share=0.5)
    assert column.summarise(CONTENT, rows_of(sets)).mean == 1.0
    assert column.summarise(CONTENT._replace(map_name="importance"), rows_of(sets)).mean < 0.9
    assert column.title == "50%"


def test_a_column_of_runs_is_the_mean_and_deviation_of_their_means():
    sets = {("known", False, seed): values("complexity.importance", [v, v + 2]) for seed, v in ((0, 1), (1, 2), (2, 6))}
    cell = RunsColumn(column=MeanColumn(metric="complexity"), runs=3).summarise(CONTENT, rows_of(sets))
    assert (cell.mean, cell.images, cell.low) == (4.0, 2, None)
    assert cell.deviation == pytest.approx(math.sqrt(7))


def test_a_column_of_runs_counts_the_failures_of_all_runs_and_has_no_number_if_a_run_is_missing():
    column = RunsColumn(column=MeanColumn(metric="complexity"), runs=3)
    sets = {("known", False, seed): values("complexity.importance", [seed, seed]) for seed in range(3)}
    sets["known", False, 2][0] = None
    cell = column.summarise(CONTENT, rows_of(sets))
    assert (cell.mean, cell.images, cell.undefined) == (1.0, 1, 1)
    sets["known", False, 1] = [None, None]
    cell = column.summarise(CONTENT, rows_of(sets))
    assert (cell.mean, cell.deviation, cell.undefined) == (None, None, 3)


def test_the_scores_of_maps_are_the_values_of_the_metrics(encoder, image):
    explanation = rx.Repeat(estimator="exact", repeats=4, base=rx.Relax(masks=40))(encoder, image, seed=0)
    segmentation = torch.zeros(24, 20, dtype=torch.bool)
    segmentation[4:12, 10:18] = True
    scores = score_maps(explanation.maps, segmentation)
    share = explanation.vote_share
    assert scores["complexity.importance"] == rx.metrics.complexity(explanation.importance).item()
    assert scores["complexity.vote_variance"] == rx.metrics.complexity(share * (1 - share)).item()
    assert scores["pointing_game.importance"] == rx.metrics.pointing_game(explanation.importance, segmentation).item()
    assert scores["mean.uncertainty"] == pytest.approx(explanation.uncertainty.double().mean().item(), abs=1e-12)
    unsegmented = score_maps(explanation.maps, None)
    assert unsegmented.keys() == scores.keys()
    assert all(math.isnan(value) == name.startswith(NEED_SEGMENTATIONS) for name, value in unsegmented.items())


def test_a_map_that_rounding_has_made_flat_has_no_entropy(encoder, image):
    explanation = rx.Relax(masks=40)(encoder, image, seed=0)
    assert score_maps(explanation.maps, None)["resolved_entropy.importance"] > 3
    flat = replace(explanation, importance=1 - 1e-6 * explanation.importance)
    assert math.isnan(score_maps(flat.maps, None)["resolved_entropy.importance"])
    constant = replace(explanation, uncertainty=torch.zeros(24, 20))
    assert score_maps(constant.maps, None)["resolved_entropy.uncertainty"] == 0


def test_a_method_without_uncertainty_has_no_scores_of_it(encoder, image):
    explanation = rx.Saliency()(encoder, image, seed=0)
    assert explanation.uncertainty is None
    scores = score_maps(explanation.maps, None)
    assert {name.partition(".")[2] for name in scores} == {"importance", "uncertainty"}
    assert all(math.isnan(value) for name, value in scores.items() if name.endswith(".uncertainty"))


def test_the_key_of_a_row_does_not_depend_on_the_number_of_images(encoder):
    from repeat_xai.data.dataset import Dataset, Sample

    dataset = Dataset(name="known", keys=["a"], load=lambda _: Sample(picture=Path("none")))
    setting = CONTENT.setting
    assert setting.describe(dataset, encoder) == replace(setting, max_images=3).describe(dataset, encoder)
    assert setting.describe(dataset, encoder) != replace(setting, seed=1).describe(dataset, encoder)
    measure = EncoderScores.of(METRICS["local_lipschitz"])
    few = replace(setting, measure=measure.with_draws(3))
    assert setting.describe(dataset, encoder) != few.describe(dataset, encoder)
    assert few.describe(dataset, encoder) != replace(setting, measure=measure.with_draws(4)).describe(dataset, encoder)
    codes = (replace(setting, measure=Codes(), method=m).describe(dataset, encoder) for m in (rx.Relax(), rx.Repeat()))
    assert next(codes) == next(codes)
    assert setting.measure == MapScores()


def test_an_encoder_is_loaded_for_the_size_that_the_protocol_needs():
    spec = EncoderSpec(name="timm:vit_tiny_patch16_384", weights="random", fit=224)
    assert spec.load("cpu").preprocessing.size == (224, 224)
    assert spec.label == "vit_tiny_patch16_384"
    assert EncoderSpec(name="onnx:some/where/mine.onnx").label == "mine"
    assert EncoderSpec(name="hf:facebook/dinov2-small").label == "dinov2-small"


def test_draws_are_set_only_for_metrics_that_draw():
    assert EncoderScores.of(METRICS["max_sensitivity"]).with_draws(3).score.draws == 3
    deletion = EncoderScores.of(METRICS["deletion"])
    assert deletion.with_draws(3) == deletion


def test_a_metric_of_votes_has_no_rows_and_no_number_for_a_method_without_votes():
    column = MeanColumn(metric="calibration", map_name="vote_share", measure=EncoderScores.of(METRICS["calibration"]))
    assert (column.title, column.better) == ("calibration (votes)", "lower")
    assert column.settings(CONTENT) == ()
    assert column.values(CONTENT, rows_of({})) is None
    assert column.summarise(CONTENT, rows_of({})) == UNDEFINED
    repeat = LineContent(replace(CONTENT.setting, method=rx.Repeat()))
    rows = rows_of({("known", False, 0): values("calibration.vote_share", [0.1, 0.3])})
    for content in (repeat, repeat._replace(votes="binary")):
        assert column.summarise(content, rows).mean == pytest.approx(0.2)


def test_an_encoder_metric_of_the_users_own_becomes_a_row(encoder, image):
    """The measure holds the function itself, so that it also runs where the registry does not know it."""

    def brightness(method, encoder, image, *, seed):
        explanation = method(encoder, image, seed=seed)
        return {"importance": (explanation.importance * image.pixels.mean(0)).sum().item()}

    metric = EncoderMetric(name="brightness", better="neither", score=brightness)
    tasks = [Task(image, ImageTag(0)), Task(rx.RepeatError("unreadable"), ImageTag(1))]
    method = rx.Relax(masks=6)
    (first, measured), (second, failed) = EncoderScores.of(metric)(encoder, method, tasks, seed=2)
    expected = (method(encoder, image, seed=2).importance * image.pixels.mean(0)).sum().item()
    assert (first.number, measured.scores, measured.calls) == (0, {"brightness.importance": expected}, 7)
    assert (second.number, failed.failure) == (1, "unreadable")


@pytest.mark.parametrize("name", ["local_lipschitz", "max_sensitivity", "deletion", "insertion", "mprt", "emprt"])
def test_an_encoder_that_fails_makes_one_failed_row(name, image):
    class NanCodes(nn.Module):
        def forward(self, codes):
            return codes * math.nan

    encoder = rx.load_encoder(nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4), NanCodes()))
    method = rx.Relax(masks=2)
    ((_, measured),) = EncoderScores.of(METRICS[name])(encoder, method, [Task(image, ImageTag(0))], seed=0)
    assert "NaN" in measured.failure
    assert not measured.scores
