"""A metric, a threshold and a dataset of a user's own, under a name."""

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


def test_a_metric_is_asked_for_by_its_name_and_scored(encoder, image, monkeypatch):
    largest = MapMetric(name="largest", better="higher", function=lambda maps: maps.amax((-2, -1)))
    with pytest.raises(rx.RepeatError, match="unknown metric 'largest'"):
        Evaluation(dataset="voc", methods={"relax": rx.Relax()}, metrics=("largest",))
    monkeypatch.setitem(METRICS, "largest", largest)
    (sheet,) = Evaluation(dataset="voc", methods={"relax": rx.Relax()}, metrics=("largest",)).sheets
    assert [(column.title, column.better) for column in sheet.columns] == [
        ("largest (I)", "higher"),
        ("largest (U)", "higher"),
    ]
    found = rx.Relax(masks=8)(encoder, image, seed=0)
    assert score_maps(found.maps, None)["largest.importance"] == found.importance.max().item()


def test_a_threshold_is_asked_for_by_its_name(encoder, image, monkeypatch):
    monkeypatch.setitem(THRESHOLDS, "upper_tenth", lambda maps: maps.flatten(1).quantile(0.9, dim=1))
    method = rx.Repeat(threshold="upper_tenth", estimator="exact", repeats=1, base=rx.Relax(masks=30))
    found = method(encoder, image, seed=0)
    assert found.vote_share.mean().item() == pytest.approx(0.1, abs=0.003)
    assert found.provenance["method"]["threshold"] == "upper_tenth"
    assert torch.equal(found.vote_share > 0, found.importance > 0)


def test_a_dataset_is_opened_by_its_name(monkeypatch):
    def mine(root: Path, *, download: bool) -> Dataset:
        return Dataset(name="mine", keys=["a", "b"], load=lambda number: Sample(picture=root / f"{number}.png"))

    monkeypatch.setitem(DATASETS, "mine", NamedDataset(title="Mine", description="My photos", open=mine))
    assert open_dataset("mine", root=Path("there"))[1].picture == Path("there/1.png")
