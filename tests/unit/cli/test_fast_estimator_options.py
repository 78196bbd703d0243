"""Tests that `explain` refuses options of the fast estimator where that is not used, and makes no results folder."""

import pytest
from command import SMALL, run_here


@pytest.mark.parametrize(
    "others",
    [["--estimator", "exact"], ["--method", "relax"], ["--method", "repeat:kernel_shap"], ["--method", "saliency"]],
)
@pytest.mark.parametrize(("option", "value"), [("--budget", 512), ("--tolerance", 0.1)])
def test_an_option_of_the_fast_estimator_is_refused_where_it_is_not_used(
    photo, tmp_path, monkeypatch, capsys, others, option, value
):
    out = tmp_path / "out"
    status, output = run_here(monkeypatch, capsys, "explain", photo, "--out", out, *SMALL, *others, option, value)
    assert (status, output.out) == (2, "")
    assert output.err.startswith(f"repeat-xai: {option[2:]}: ")
    assert output.err.count("\n") == 1
    assert not out.exists()
