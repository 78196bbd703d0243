"""Tests of the help of every option: a sentence in a named panel, with values from the registries."""

import re

import pytest
import typer
from command import run_here

from repeat_xai.cli.commands import COMMANDS, load_command
from repeat_xai.cli.options import ADVANCED, BUDGET, HOW, OUTPUT, WHAT, WHERE
from repeat_xai.data.known_datasets import DATASETS
from repeat_xai.encoders.huggingface_model import MODEL_POOLS
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.experiments.executors.executor_names import EXECUTORS
from repeat_xai.experiments.paper.presets import PRESETS
from repeat_xai.methods.bases.base_options import CHANNELS, FILLS
from repeat_xai.methods.bases.features import FEATURES
from repeat_xai.methods.method_names import METHODS
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.metrics import METRICS
from repeat_xai.metrics.detection import AGGREGATES

PANELS = (WHAT, HOW, BUDGET, OUTPUT, WHERE, ADVANCED)
MAX_PLAIN_OPTIONS = 12


def parameters(command):
    """Return the arguments and options of a command by name, without --help."""
    context = typer.Context(load_command(command))
    return {parameter.name: parameter for parameter in context.command.params}


def options(command):
    return {name: option for name, option in parameters(command).items() if option.param_type_name == "option"}


ALL = [(command, name) for command in COMMANDS for name in parameters(command)]
OPTIONS = [(command, name) for command in COMMANDS for name in options(command)]


@pytest.mark.parametrize(("command", "name"), ALL)
def test_help_is_a_sentence(command, name):
    text = parameters(command)[name].help
    assert text is not None
    assert text[0].isupper(), text
    assert text.endswith("."), text
    assert len(text.split()) > 3, text
    for sentence in re.split(r"(?<=[.;]) (?=[A-Z])", text):
        assert len(sentence.split()) > 2, sentence
    assert "  " not in text
    assert "; may be" not in text, "a clause without a subject"


@pytest.mark.parametrize(("command", "name"), OPTIONS)
def test_every_option_is_in_a_named_panel(command, name):
    panel = options(command)[name].rich_help_panel
    assert panel in PANELS or (command == "serve" and panel), panel


def test_explain_has_few_options_beside_the_advanced_ones():
    plain = [name for name, option in options("explain").items() if option.rich_help_panel != ADVANCED]
    assert len(plain) <= MAX_PLAIN_OPTIONS, plain


@pytest.mark.parametrize("command", COMMANDS)
def test_panels_come_in_the_same_order_in_every_command(command, monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, command, "--help")
    assert status == 0
    panels = [title for title in re.findall(r"╭─ (.+?) ─", output.out) if title in PANELS]
    assert panels == sorted(panels, key=PANELS.index)
    if command == "explain":
        assert tuple(panels) == PANELS


REGISTRIES = {
    "pool": MODEL_POOLS,
    "threshold": THRESHOLDS,
    "similarity": KERNELS,
    "perturbation": PERTURBATIONS,
    "fill": FILLS,
    "features": FEATURES,
    "channels": CHANNELS,
    "aggregate": AGGREGATES,
    "executor": EXECUTORS,
    "metrics": METRICS,
    "preset": PRESETS,
}
"""The names that an option takes."""


@pytest.mark.parametrize(("command", "name"), [option for option in OPTIONS if option[1] in REGISTRIES])
def test_help_lists_every_name_that_the_option_takes(command, name):
    words = re.findall(r"[\w+]+", options(command)[name].help)
    assert set(REGISTRIES[name]) <= set(words)


def test_help_of_the_dataset_lists_every_dataset():
    assert set(DATASETS) <= set(re.findall(r"[\w+]+", options("evaluate")["dataset"].help))


@pytest.mark.parametrize("name", ["samples", "steps", "fill", "features"])
def test_help_of_an_option_of_some_methods_names_exactly_these(name):
    words = set(re.findall(r"\w+", options("explain")[name].help))
    assert words & METHODS.keys() == {method for method, value in METHODS.items() if hasattr(value, name)}
