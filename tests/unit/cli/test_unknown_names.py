"""Tests of names that nobody knows: status 2 and one line with the names that are spelled most like them."""

import pytest
from command import SMALL, run_here

from repeat_xai.engine.kernels import KERNELS
from repeat_xai.methods.thresholds import THRESHOLDS

UNKNOWN = [
    (
        ["explain", "PHOTO", "--encoder", "torchvision:resnet51"],
        "encoder 'torchvision:resnet51'",
        "torchvision:resnet50",
    ),
    (["explain", "PHOTO", "--encoder", "efficientnet_lite"], "encoder 'efficientnet_lite'", "efficientnet_lite0"),
    (["explain", "PHOTO", *SMALL, "--method", "relaxx"], "method 'relaxx'", "relax"),
    (["explain", "PHOTO", *SMALL, "--method", "repeat:kernelshap"], "method 'kernelshap'", "kernel_shap"),
    (["screen", "PHOTO", "--encoder", "timm:resnet51"], "encoder 'timm:resnet51'", "timm:resnet50"),
    (["evaluate", "--dataset", "eurosta"], "dataset 'eurosta'", "eurosat"),
    (["evaluate", "--dataset", "PHOTOS", "--against", "cifar1O"], "dataset 'cifar1O'", "cifar10"),
    (["evaluate", "--dataset", "PHOTOS", "--methods", "relax,limes"], "method 'limes'", "lime"),
    (["evaluate", "--dataset", "PHOTOS", "--metrics", "complexty"], "metric 'complexty'", "complexity"),
    (["evaluate", "--dataset", "PHOTOS", "--encoder", "torchvision:alexnets"], "encoder", "torchvision:alexnet"),
    (["reproduce", "threshold"], "table or figure 'threshold'", "thresholds"),
]


@pytest.mark.parametrize(("arguments", "unknown", "nearest"), UNKNOWN)
def test_an_unknown_name_is_wrong_usage_and_the_nearest_name_is_given(
    arguments, unknown, nearest, photo, monkeypatch, capsys
):
    places = {"PHOTO": photo, "PHOTOS": photo.parent}
    out = photo.parent / "out"
    status, output = run_here(
        monkeypatch, capsys, *(places.get(argument, argument) for argument in arguments), "--out", out
    )
    assert (status, output.out) == (2, "")
    (line,) = output.err.splitlines()
    assert line.startswith(f"repeat-xai: unknown {unknown}")
    assert "did you mean" in line
    assert nearest in line.split("did you mean")[1]
    assert not out.exists()


@pytest.mark.parametrize(("kind", "registry"), [("thresholds", THRESHOLDS), ("kernels", KERNELS)])
def test_thresholds_and_kernels_are_listed_with_a_description(kind, registry, monkeypatch, capsys):
    monkeypatch.setitem(registry, "mine", next(iter(registry.values())))
    status, output = run_here(monkeypatch, capsys, "list", kind)
    assert (status, output.err) == (0, "")
    lines = [line.split(maxsplit=1) for line in output.out.splitlines()]
    assert [name for name, _ in lines] == [*registry]
    assert all(description for _, description in lines)
