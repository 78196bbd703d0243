"""Tests of methods by name: they are listed, get their options, and are drawn side by side."""

import json
import re

import numpy as np
import PIL.Image
import pytest
from command import SMALL, run_here, warned_images, without_image_warnings

import repeat_xai as rx
from repeat_xai.methods.method_names import METHODS
from repeat_xai.metrics import KINDS, METRICS
from repeat_xai.output import figures as plot

FEW = ["--estimator", "exact", "--masks", 6, "--repeats", 2, "--passes", 2, "--samples", 12]


def explain(photo, monkeypatch, capsys, *options):
    out = photo.parent / "out"
    return run_here(monkeypatch, capsys, "explain", photo, "--out", out, *SMALL, *options)


def test_methods_are_listed_with_what_they_need_and_cost(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "methods")
    assert status == 0
    rows = {line.split()[0]: line.split() for line in output.out.split("\n\n")[0].splitlines()}
    assert rows["saliency"][1:5] == ["no", "yes", "2", "Simonyan"]
    assert rows["kernel_shap"][1:5] == ["yes", "no", "501", "Lundberg"]
    assert rows.keys() == {"method"} | METHODS.keys()


def test_metrics_are_listed(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "metrics")
    assert status == 0
    lines = {line.split()[0]: line.split() for line in output.out.splitlines() if line}
    assert set(METRICS) <= set(lines)
    for name, needs in (("complexity", "map"), ("pointing_game", "segmentation"), ("mprt", "weights")):
        assert lines[name][1:3] == [METRICS[name].better, needs]
    assert output.out.splitlines().count("") == 2 * len(KINDS) - 1, "a block for each kind"


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_by_its_name(name, photo, monkeypatch, capsys):
    few = {"repeat": FEW[:6], "relax": FEW[2:4]}.get(name, FEW[6:8])
    few = [*few, *FEW[8:]] if "samples" in METHODS[name].__dataclass_fields__ else few
    status, output = explain(photo, monkeypatch, capsys, "--method", name, *few)
    assert (status, without_image_warnings(output.err)) == (0, "")
    explanation = rx.Explanation.load(photo.parent / "out" / "cat.npz")
    assert explanation.importance.shape == (64, 64)
    assert explanation.uncertainty.max() > 0
    assert warned_images(output.err) == ([str(photo)] if name in ("repeat", "relax") else [])


@pytest.mark.slow
def test_several_methods_are_drawn_side_by_side(photo, monkeypatch, capsys):
    names = "repeat,relax,saliency,repeat:kernel_shap"
    status, output = explain(photo, monkeypatch, capsys, "--method", names, *FEW, "--json")
    assert (status, without_image_warnings(output.err)) == (0, "")
    out = photo.parent / "out"
    assert sorted(p.name for p in out.iterdir()) == [
        "cat.comparison.png",
        "index.html",
        "relax",
        "repeat",
        "repeat-kernel_shap",
        "saliency",
    ]
    assert json.loads(output.out.splitlines()[-1]) == {
        "image": str(photo),
        "comparison": str(out / "cat.comparison.png"),
    }
    _, again = explain(photo, monkeypatch, capsys, "--method", names, *FEW, "--json")
    assert [json.loads(line).get("already_done", True) for line in again.out.splitlines()] == [True] * 5


@pytest.mark.slow
def test_a_comparison_shows_the_maps_as_they_are(photo, monkeypatch, capsys):
    explain(photo, monkeypatch, capsys, "--method", "repeat,vargrad,repeat:lime", *FEW)
    folders = ("repeat", "vargrad", "repeat-lime")
    explanations = [rx.Explanation.load(photo.parent / "out" / folder / "cat.npz") for folder in folders]
    figure = plot.comparison(explanations)
    figure.canvas.draw()
    pictures = [axes for axes in figure.axes if len(axes.images) > 1]
    assert [axes.get_title() for axes in pictures[::2]] == [
        "REPEAT\nrepeats 2  ·  masks 6",
        "VarGrad\npasses 2  ·  samples 12",
        "REPEAT over LIME\nrepeats 2  ·  samples 12",
    ]
    for axes, map_ in zip(
        pictures,
        [m for explanation in explanations for m in (explanation.importance, explanation.uncertainty)],
        strict=True,
    ):
        np.testing.assert_array_equal(axes.images[-1].get_array(), map_.numpy())
    assert pictures[0].images[-1].get_clim() == (0, 1)
    assert pictures[1].images[-1].get_clim() == (0, 0.25)


@pytest.mark.slow
def test_options_reach_the_methods_that_have_them(photo, monkeypatch, capsys):
    options = ["--method", "kernel_shap,integrated_gradients", "--passes", 2, "--samples", 9, "--steps", 3]
    options += ["--fill", "black", "--features", "superpixels", "--channels", "max_abs", "--perturbation", "noise"]
    assert explain(photo, monkeypatch, capsys, *options, "--target", photo)[0] == 0
    records = {
        name: json.loads((photo.parent / "out" / name / "cat.json").read_text())["method"]
        for name in ("kernel_shap", "integrated_gradients")
    }
    shap, path = (record["base"] for record in records.values())
    assert (shap["samples"], shap["fill"], shap["channels"]) == (9, "black", "max_abs")
    assert shap["features"] == {"name": "Superpixels", "segments": 49, "compactness": 10.0}
    assert (path["steps"], path["fill"]) == (3, "black")
    assert shap["target"] == path["target"]
    assert shap["target"]["sha256"] == digest_of(photo)
    assert shap["target"]["preprocessing"]["size"] == [64, 64]
    assert records["kernel_shap"]["by"] == {"name": "Noise", "deviation": 0.1}


def digest_of(photo):
    import hashlib

    return hashlib.sha256(photo.read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "salience"], "unknown method 'salience'; did you mean saliency?"),
        (["--method", "repeat:saliency"], "Saliency gives the same map whatever the seed"),
        (["--method", "relax:lime"], "unknown method 'relax:lime'"),
        (["--method", "repeat:repeat"], "REPEAT over another base is repeat:NAME"),
        (["--method", "saliency", "--samples", 5], "samples: not an option of saliency"),
        (["--method", "saliency", "--perturbation", "shuffle"], "unknown perturbation 'shuffle'"),
        (["--method", "lime", "--features", "words"], "unknown features 'words'"),
        (["--method", "lime", "--fill", "white"], "unknown fill 'white'"),
        (["--method", "saliency,"], "unknown method ''"),
        (["--method", "saliency,saliency"], "a method is named twice"),
        (["--method", "lime", "--samples", 2], "samples must be a whole number of at least 3"),
    ],
)
def test_wrong_requests(arguments, message, photo, monkeypatch, capsys):
    status, output = explain(photo, monkeypatch, capsys, *arguments)
    assert status == 2
    assert message in output.err.splitlines()[-1]
    assert not (photo.parent / "out").exists()


def test_superpixels_come_from_the_undisturbed_image(photo, monkeypatch, capsys):
    options = ["--method", "kernel_shap", "--features", "superpixels", "--samples", 9, "--passes", 2]
    assert explain(photo, monkeypatch, capsys, *options)[0] == 0


@pytest.mark.slow
def test_a_warning_is_one_line_that_is_printed_once(photo, monkeypatch, capsys):
    options = ["--encoder", "efficientnet_lite0", "--method", "guided_backprop, relax", "--passes", 2, "--masks", 4]
    status, output = run_here(monkeypatch, capsys, "explain", photo, "--out", photo.parent / "out", *options)
    assert status == 0
    (line,) = without_image_warnings(output.err).splitlines()
    assert line.startswith("repeat-xai: efficientnet_lite0 has no nn.ReLU")


def test_a_precision_that_would_not_be_used_is_refused(photo, monkeypatch, capsys):
    status, output = explain(photo, monkeypatch, capsys, "--method", "saliency", "--precision", "bfloat16")
    assert (status, output.out) == (2, "")
    assert output.err.endswith("Saliency is run by torch in float32, as the weights are; leave both at auto\n")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["repeat", "relax", "saliency", "repeat:kernel_shap"])
def test_every_method_takes_a_target(method, photo, monkeypatch, capsys):
    other = photo.parent / "other.png"
    PIL.Image.effect_noise((80, 80), 90).convert("RGB").save(other)
    budget = ["--masks", 10, "--repeats", 2] if method in ("repeat", "relax") else FEW[4:]
    budget = [option for option in budget if method != "relax" or option not in ("--repeats", 2)]
    maps = []
    for number, options in enumerate(([], ["--target", other], ["--target", other, "--target-not", photo])):
        out = ("--out", photo.parent / f"out{number}")
        status, output = run_here(monkeypatch, capsys, "explain", photo, *SMALL, "--method", method, *out, *options)
        assert status == 0, output.err
        explanation = rx.Explanation.load(photo.parent / f"out{number}" / "cat.npz")
        maps.append(explanation.importance)
        assert (explanation.effect is not None) == (method in ("repeat", "relax") and number > 0)
    assert not maps[0].equal(maps[1])
    assert not maps[1].equal(maps[2])


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--target", "dog.png"], 1, "dog.png: no such file"),
        (["--target", "cat.png", "--target-text", "a cat"], 2, "only one of them"),
        (["--target-not", "cat.png"], 2, "target-not needs a target"),
        (["--target-text", "a cat"], 2, "has no text tower"),
        (["--target-text", " "], 2, "at least one letter"),
    ],
)
def test_a_wrong_target_is_refused_in_one_line(options, status, message, photo, monkeypatch, capsys):
    monkeypatch.chdir(photo.parent)
    given, output = explain(photo, monkeypatch, capsys, *options)
    assert (given, output.out, len(output.err.splitlines())) == (status, "", 1)
    assert message in output.err


@pytest.mark.slow
def test_the_users_own_comparison_is_not_written_over(photo, monkeypatch, capsys):
    own = photo.parent / "out" / "cat.comparison.png"
    own.parent.mkdir()
    PIL.Image.new("RGB", (9, 9)).save(own)
    before = own.read_bytes()
    status, output = explain(photo, monkeypatch, capsys, "--method", "relax,saliency", "--masks", 4, "--passes", 2)
    assert status == 1
    assert "is not written over" in output.err
    assert own.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        (["--method", "saliency", "--threshold", "mean"], "threshold"),
        (["--method", "saliency", "--masks", 6, "--cells", 3], "cells"),
        (["--method", "once:saliency", "--passes", 2], "passes"),
        (["--method", "relax", "--votes", "binary"], "votes"),
        (["--method", "repeat,relax", "--perturbation", "noise"], "perturbation"),
        (["--method", "repeat:kernel_shap", "--estimator", "exact"], "estimator"),
        (["--method", "repeat:threshold=otsu", "--threshold", "li"], "threshold"),
    ],
)
def test_an_option_that_no_method_uses_is_refused(options, unused, photo, monkeypatch, capsys):
    status, output = explain(photo, monkeypatch, capsys, *options)
    assert (status, output.out) == (2, "")
    names = options[1].replace(",", ", ")
    assert re.fullmatch(rf"repeat-xai: .*{unused}: not an option of {names}\n", output.err)
    assert not (photo.parent / "out").exists()
