"""Tests that impossible numbers, and values that are no numbers, are refused at once in one line."""

import subprocess
import sys

import pytest
from hostile.damages import deleted
from hostile.outputs import quick_panels, verdict_of_main
from hostile.verdicts import Case, verdict_of_call
from small_work import network, pictures

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError

LONG_PART = pytest.mark.hostile
HUGE = ("9" * 20, "9" * 400, "9" * 5000)
"""Huge numbers; the last one is longer than Python reads or writes."""
FEWER = ("0", "-1", "-" + "9" * 20)
NO_NUMBERS = ("", "x", "1e3", "1.5", "nan", "inf", "0x10", "1 000")
TIMEOUT = 5.0
COUNTS = {
    "explain": {
        "--masks": (),
        "--repeats": (),
        "--budget": (),
        "--seed": (),
        "--size": (),
        "--cells": (),
        "--chunk": (),
        "--passes": ("--method", "occlusion"),
        "--samples": ("--method", "kernel_shap"),
        "--steps": ("--method", "integrated_gradients"),
    },
    "screen": {"--masks": (), "--repeats": (), "--seed": (), "--size": ()},
    "evaluate": {
        "--images": (),
        "--masks": (),
        "--repeats": (),
        "--runs": (),
        "--seed": (),
        "--size": (),
        "--passes": ("--methods", "occlusion"),
        "--draws": (),
        "--workers": ("--executor", "processes"),
    },
    "reproduce": {
        "--images": (),
        "--masks": (),
        "--repeats": (),
        "--passes": (),
        "--samples": (),
        "--steps": (),
        "--draws": (),
        "--seed": (),
    },
}
"""Options that count something, each with the options without which it would not be used."""
SHARES = {"--keep": ("0", "1", "-1", "2", "nan", "inf"), "--level": ("0.5", "-1", "2", "nan"), "--tolerance": FEWER}
"""Options of `explain` that are not whole numbers, with invalid values."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The arguments of each command, apart from the number."""
    folder = tmp_path_factory.mktemp("numbers")
    encoder, photos = ("--encoder", network(folder).name), pictures(folder / "photos", 1)
    return {
        "explain": ("explain", photos, *encoder),
        "screen": ("screen", photos, *encoder),
        "evaluate": ("evaluate", "--dataset", photos, *encoder, "--protocol", "encoder", "--device", "cpu"),
        "reproduce": (
            *("reproduce", "complexity", "--only-these", "--encoder", "torchvision:squeezenet1_1=random"),
            *("--data-root", folder, "--device", "cpu"),
        ),
    }


def cases():
    for command, options in COUNTS.items():
        for option, others in options.items():
            least = ("-1", "-" + "9" * 20) if option == "--seed" else FEWER
            for number, value in enumerate((*HUGE, *least, *NO_NUMBERS)):
                marks = () if number in (0, 2, 4, 7) else LONG_PART
                yield pytest.param(command, option, value, others, marks=marks, id=f"{command} {option} {value[:22]}")
    for option, values in SHARES.items():
        for value in values:
            yield pytest.param("explain", option, value, (), id=f"explain {option} {value[:22]}")


@pytest.mark.parametrize(("command", "option", "value", "others"), list(cases()))
def test_an_invalid_number_is_refused_at_once_in_one_line(command, option, value, others, commands, judge, tmp_path):
    arguments = (*commands[command], *others, "--out", tmp_path / "out", option, value)
    with quick_panels():
        verdict = verdict_of_main(*arguments, seconds=TIMEOUT)
    judge("numbers", verdict, Case(name=option, make=deleted, message=option.removeprefix("--").partition("-")[0]))
    assert not list(tmp_path.rglob("*.npz"))
    assert not list(tmp_path.rglob("*.parquet"))


OBJECTS = {
    "Relax.masks": lambda value: rx.Relax(masks=value),
    "Relax.chunk": lambda value: rx.Relax(chunk=value),
    "Grid.cells": lambda value: rx.Grid(cells=value),
    "Repeat.repeats": lambda value: rx.Repeat(repeats=value),
    "Repeat.budget": lambda value: rx.Repeat(budget=value),
    "Spread.passes": lambda value: rx.Spread(base=rx.Saliency(), passes=value),
    "KernelShap.samples": lambda value: rx.KernelShap(samples=value),
    "Lime.samples": lambda value: rx.Lime(samples=value),
    "SmoothGrad.samples": lambda value: rx.SmoothGrad(samples=value),
    "GradientShap.samples": lambda value: rx.GradientShap(samples=value),
    "IntegratedGradients.steps": lambda value: rx.IntegratedGradients(steps=value),
    "Occlusion.window": lambda value: rx.Occlusion(window=value),
    "Squares.cells": lambda value: rx.Squares(cells=value),
    "Superpixels.segments": lambda value: rx.Superpixels(segments=value),
    "load_encoder.size": lambda value: rx.load_encoder("efficientnet_lite0", size=value),
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    "value", [10**20, 10**5000, -(10**5000), 0, -1], ids=["20 digits", "5000 digits", "minus 5000 digits", "0", "-1"]
)
def test_python_refuses_the_same_numbers(name, value, judge):
    message = rf"^{name.rpartition('.')[2]} must be .{{,90}}$"
    judge(
        "numbers",
        verdict_of_call(lambda: OBJECTS[name](value), seconds=5.0),
        Case(name=name, make=deleted, message=message),
    )


@pytest.mark.parametrize("value", ["100", 1.5, float("nan"), float("inf"), None, True, [1], b"1", "a\nb", "x" * 10**6])
def test_values_that_are_no_whole_numbers_are_refused_in_a_short_line(value):
    """The check is called directly, because the types of calls are checked before it only while testing."""
    from repeat_xai.errors import at_least

    with pytest.raises(ConfigurationError) as refused:
        at_least("masks", value, 1)
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 120


LIMITED = """
import resource, sys
import numpy as np
from repeat_xai.methods.fast_estimator import resample
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = resample(100, 400_000, seed=1)
assert (counts.sum(1) == 400_000).all()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@LONG_PART
def test_the_memory_of_the_fast_estimator_does_not_grow_with_the_number_of_repeats(judge):
    """All repeats together would take 320 MB for each of several arrays."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150
