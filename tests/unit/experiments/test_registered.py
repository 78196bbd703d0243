"""Tests of metrics, thresholds and datasets of a user's own, which are registered under a name."""

from pathlib import Path

import pytest
import torch

import repeat_xai as rx
from repeat_xai.data.dataset import Dataset, NamedDataset, Sample
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.data.open_dataset import open_dataset
from repeat_xai.experiments.evaluation import Evaluation
from repeat_xai.experiments.map_scores import score_maps
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import METRICS, MapMetric


def test_a_registered_metric_is_scored_by_its_name(encoder, image, monkeypatch):
    largest = MapMetric(name="largest", better="higher", function=lambda maps: maps.amax((-2, -1)))
    with pytest.raises(rx.RepeatError, match="unknown metric"):
        Evaluation(dataset="voc", methods={"relax": rx.Relax()}, metrics=("largest",))
    monkeypatch.setitem(METRICS, "largest", largest)
    (sheet,) = Evaluation(dataset="voc", methods={"relax": rx.Relax()}, metrics=("largest",)).sheets
    assert [(column.title, column.better) for column in sheet.columns] == [
        ("largest (I)", "higher"),
        ("largest (U)", "higher"),
    ]
    explanation = rx.Relax(masks=8)(encoder, image, seed=0)
    assert score_maps(explanation.maps, None)["largest.importance"] == explanation.importance.max().item()


def test_a_registered_threshold_is_used_by_its_name(encoder, image, monkeypatch):
    monkeypatch.setitem(THRESHOLDS, "upper_tenth", lambda maps: maps.flatten(1).quantile(0.9, dim=1))
    method = rx.Repeat(threshold="upper_tenth", estimator="exact", repeats=1, base=rx.Relax(masks=30))
    explanation = method(encoder, image, seed=0)
    assert explanation.vote_share.mean().item() == pytest.approx(0.1, abs=0.003)
    assert explanation.provenance["method"]["threshold"] == "upper_tenth"
    assert torch.equal(explanation.vote_share > 0, explanation.importance > 0)


def test_a_registered_dataset_is_opened_by_its_name(monkeypatch):
    def open_own(root: Path, *, download: bool) -> Dataset:
        return Dataset(name="mine", keys=["a", "b"], load=lambda number: Sample(picture=root / f"{number}.png"))

    monkeypatch.setitem(DATASETS, "mine", NamedDataset(title="Mine", description="My photos", open=open_own))
    assert open_dataset("mine", root=Path("folder"))[1].picture == Path("folder/1.png")
