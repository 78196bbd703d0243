"""Tests that an explanation is saved, read back, judged and shown correctly."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import repeat_xai as rx
from repeat_xai.types import Explanation, Photo

NAMED = {"method": {"name": "Repeat"}, "encoder": {"name": "e"}, "seed": 3}


@pytest.fixture
def photo():
    picture = np.arange(60 * 80 * 3, dtype=np.uint8).reshape(60, 80, 3)
    return Photo(name="a.png", picture=picture, size=(60, 80), box=(10.0, 0.0, 70.0, 60.0), digest="d")


def explanation_of(photo, share, **maps):
    share = torch.as_tensor(share, dtype=torch.float32)
    maps = {"importance": share, "uncertainty": share * (1 - share)} | maps
    return Explanation(vote_share=share, photo=photo, provenance=NAMED, **maps)


@pytest.mark.parametrize("repeats", [1, 2, 10, 20, 40, 60, 100])
def test_the_verdict_does_not_depend_on_rounding(photo, repeats):
    votes = torch.arange(repeats + 1)
    share = sum((votes > k).double() / repeats for k in range(repeats)).float()
    expected = [1 if 100 * v >= 95 * repeats else -1 if 100 * v <= 5 * repeats else 0 for v in votes.tolist()]
    assert explanation_of(photo, share[None]).verdict(0.95)[0].tolist() == expected


def test_a_verdict_needs_votes_and_a_level_above_a_half(photo):
    explanation = explanation_of(photo, [[0.0, 1.0]])
    for level in (0.5, 1.1):
        with pytest.raises(rx.RepeatError, match="level"):
            explanation.verdict(level)
    without_votes = Explanation(
        importance=torch.ones(1, 1), uncertainty=torch.ones(1, 1), vote_share=None, photo=photo, provenance={}
    )
    with pytest.raises(rx.RepeatError, match="no votes"):
        without_votes.verdict()


def test_certain_importance_keeps_the_more_certain_half(photo):
    importance, uncertainty = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0.1, 0.4], [0.2, 0.3]])
    kept = explanation_of(photo, torch.ones(2, 2), importance=importance, uncertainty=uncertainty).certain_importance()
    assert kept.tolist() == [[1, 0], [3, 0]]


def test_a_saved_explanation_is_read_back_unchanged(photo, tmp_path):
    explanation = explanation_of(photo, torch.rand(6, 8))
    explanation.save(tmp_path / "a.npz")
    again = Explanation.load(tmp_path / "a.npz")
    for name in ("importance", "uncertainty", "vote_share"):
        assert torch.equal(getattr(again, name), getattr(explanation, name))
    assert again.provenance == explanation.provenance
    assert (again.photo.size, again.photo.box, again.photo.name) == (photo.size, photo.box, photo.name)
    np.testing.assert_array_equal(again.photo.picture, photo.picture)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut short"])
def test_a_file_that_holds_no_explanation_is_refused(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(rx.RepeatError, match="not an explanation"):
        Explanation.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", importance=np.array([{"a": 1}], dtype=object))
    with pytest.raises(rx.RepeatError, match="not an explanation"):
        Explanation.load(tmp_path / "b.npz")
    with pytest.raises(rx.RepeatError, match="no such file"):
        Explanation.load(tmp_path / "c.npz")


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"importance": torch.full((2, 2), torch.nan)}, "importance"),
        ({"importance": torch.zeros(2, 2).double()}, "float64"),
        ({"uncertainty": torch.full((2, 2), -0.1)}, "uncertainty"),
        ({"uncertainty": torch.full((2, 2), torch.nan)}, "uncertainty"),
        ({"vote_share": torch.full((2, 2), 1.1)}, "share of votes"),
        ({"provenance": {}}, "method"),
        ({"provenance": NAMED | {"ran": 5}}, "ran"),
        ({"provenance": NAMED | {"photo": 5}}, "photo"),
        ({"provenance": NAMED | {"more": object()}}, "not JSON serializable"),
        ({"provenance": NAMED | {"more": CYCLE}}, "Circular reference"),
    ],
)
def test_an_explanation_that_could_not_be_read_back_is_not_saved(photo, tmp_path, fields, message):
    whole = explanation_of(photo, torch.zeros(2, 2))
    with pytest.raises(rx.RepeatError, match=message):
        replace(whole, **fields).save(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


def test_an_explanation_without_uncertainty_is_read_back_without_it(photo, tmp_path):
    without = replace(explanation_of(photo, torch.zeros(2, 2)), uncertainty=None, vote_share=None)
    without.save(tmp_path / "a.npz")
    assert Explanation.load(tmp_path / "a.npz").uncertainty is None
    assert "does not say how uncertain" in without._repr_html_()


def test_an_explanation_shows_itself_in_a_notebook(encoder, image, tmp_path):
    explanation = rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=2)(encoder, image, seed=0)
    (tmp_path / "shown.png").write_bytes(explanation._repr_png_())
    with Pillow.open(tmp_path / "shown.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 900
    shown = explanation._repr_html_()
    assert shown.startswith("<iframe ")
    assert shown.count("<") == 2
    json.dumps(explanation.provenance)
