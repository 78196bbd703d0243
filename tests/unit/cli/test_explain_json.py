"""`explain --json` prints the numbers of each image."""

import json

import pytest
from command import SMALL, run_here

import repeat_xai as rx


@pytest.mark.slow
@pytest.mark.parametrize(("method", "votes"), [("repeat", True), ("relax", False)])
def test_a_line_has_mean_uncertainty_and_the_share_decided(photo, monkeypatch, capsys, method, votes):
    out = photo.parent / "out"
    options = ["--method", method, "--masks", 8, "--repeats", 2, "--estimator", "exact", "--level", 0.9, "--json"]
    for already_done in (False, True):
        status, output = run_here(monkeypatch, capsys, "explain", photo, "--out", out, *SMALL, *options)
        assert status == 0, output.err
        line = json.loads(output.out)
        explanation = rx.Explanation.load(line["maps"])
        assert line["already_done"] == already_done
        assert line["mean_uncertainty"] == explanation.uncertainty.double().mean().item() > 0
        expected = (explanation.verdict(0.9) != 0).double().mean().item() if votes else None
        assert line["share_decided"] == expected
