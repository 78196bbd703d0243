"""Tests of the default protocol, which is the encoder's own everywhere but in the reproduction of the paper."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from drawings import figure_request

import repeat_xai as rx
from repeat_xai.cli.evaluate import evaluate
from repeat_xai.cli.explain import explain
from repeat_xai.cli.screen import screen
from repeat_xai.experiments.evaluation import Evaluation
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES
from repeat_xai.experiments.paper.reproduction import Reproduction
from repeat_xai.experiments.settings import EncoderSpec, Setting
from repeat_xai.output.results_folder import ResultsFolder


@pytest.mark.parametrize(
    "takes_protocol",
    [explain, screen, evaluate, rx.explain, rx.explain_many, rx.load_image, Evaluation, Setting, ResultsFolder],
)
def test_the_encoders_own_preprocessing_is_the_default(takes_protocol):
    assert inspect.signature(takes_protocol).parameters["protocol"].default == "encoder"


def test_an_evaluation_passes_its_protocol_to_every_row():
    evaluation = Evaluation(
        dataset="voc",
        against=("eurosat",),
        methods={"relax": rx.Relax()},
        metrics=("complexity", "emprt", "ood", "codes"),
    )
    for protocol in ("encoder", "paper"):
        sheets = replace(evaluation, protocol=protocol).sheets
        assert {setting.protocol for sheet in sheets for setting in sheet.settings} == {protocol}


def test_every_row_of_the_papers_tables_has_the_papers_protocol():
    for table in TABLES.values():
        for block in table.blocks:
            settings = Reproduction().sheet(table, block, [EncoderSpec()]).settings
            assert {setting.protocol for setting in settings} == {"paper"}, table.name


@pytest.mark.parametrize("name", FIGURES)
def test_every_row_of_the_papers_figures_has_the_papers_protocol(name):
    assert figure_request(name, Path()).setting("voc", "relax").protocol == "paper"


def test_under_the_papers_protocol_an_encoder_takes_224_pixels():
    assert EncoderSpec.of("timm:vit_tiny_patch16_384").fit is None
    assert EncoderSpec.of("timm:vit_tiny_patch16_384", protocol="paper").fit == 224
    assert {spec.fit for spec in Reproduction().encoders(["resnet50", "vit_b_16"])} == {224}
