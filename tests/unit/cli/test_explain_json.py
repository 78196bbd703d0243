"""`explain --json` prints the numbers of each image."""

import json

import PIL.Image
import pytest
from command import SMALL, run_here

import repeat_xai as rx


@pytest.mark.slow
@pytest.mark.parametrize(("method", "votes"), [("repeat", True), ("relax", False)])
def test_a_line_has_mean_uncertainty_and_the_share_decided(photo, monkeypatch, capsys, method, votes):
    out = photo.parent / "out"
    options = ["--method", method, "--masks", 8, "--json"]
    options += ["--repeats", 2, "--estimator", "exact", "--level", 0.9] if votes else []
    for already_done in (False, True):
        status, output = run_here(monkeypatch, capsys, "explain", photo, "--out", out, *SMALL, *options)
        assert status == 0, output.err
        line = json.loads(output.out)
        explanation = rx.Explanation.load(line["maps"])
        assert line["already_done"] == already_done
        assert line["mean_uncertainty"] == explanation.uncertainty.double().mean().item() > 0
        expected = (explanation.verdict(0.9) != 0).double().mean().item() if votes else None
        assert line["share_decided"] == expected


def test_a_line_says_whether_the_photo_is_flat_and_how_large_the_budget_is(photo, monkeypatch, capsys):
    PIL.Image.new("RGB", (80, 60), (128, 128, 128)).save(photo)
    options = ["--out", photo.parent / "out", *SMALL, "--budget", 300]
    _, output = run_here(monkeypatch, capsys, "explain", photo, *options)
    assert "encoder calls (300 asked for, rounded up to whole blocks)" in output.out
    line = json.loads(run_here(monkeypatch, capsys, "explain", photo, *options, "--json")[1].out)
    assert line["is_of_flat_photo"] is True
    assert line["budget"] == 384
