"""The paper's tables as data, and which of them can be reproduced with what is available."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from command import run_here
from skimage import data

import repeat_xai as rx
from repeat_xai.experiments import detection_columns
from repeat_xai.experiments.paper.presets import PRESETS
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES
from repeat_xai.experiments.paper.reproduction import Availability, Reproduction
from repeat_xai.experiments.settings import EncoderSpec
from repeat_xai.experiments.worker import Worker
from repeat_xai.metrics.detection import detect_poison

TINY = EncoderSpec(name="torchvision:squeezenet1_1", weights="random", fit=224)


@pytest.fixture
def root(tmp_path):
    """Return a data folder with twelve images as CIFAR-10 has them, and twelve as EuroSAT has them."""
    crops = [data.chelsea()[i : i + 32, i : i + 32] for i in range(0, 120, 10)]
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=np.stack(crops), labels=np.arange(12) % 10)
    for number, crop in enumerate(crops):
        path = tmp_path / f"eurosat/2750/Forest/Forest_{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(crop).resize((64, 64)).save(path)
    return tmp_path


def test_every_printed_line_has_a_value_for_each_column():
    for table in TABLES.values():
        assert table.where
        for block in table.blocks:
            for lines in block.printed.values():
                for name, values in lines.items():
                    assert len(values) == len(block.columns), (table.name, name)
    assert len(TABLES) == 12


@pytest.mark.parametrize(
    ("table", "dataset", "encoder", "method", "value"),
    [
        ("sanity", "voc", "resnet50", "repeat", 0.48),
        ("sanity", "coco", "vit_b_16", "saliency", -0.11),
        ("ood-eurosat", "coco", "resnet50", "guided_backprop", 0.823),
        ("complexity", "voc", "vit_b_16", "integrated_gradients", 10.49),
        ("kernel-shap-complexity", "coco", "resnet50", "repeat:kernel_shap", 10.28),
        ("thresholds", "voc", "alexnet", "repeat:threshold=li", 0.704),
        ("repeats", "voc", "alexnet", "repeat:repeats=30", 0.70),
        ("ood-fashionmnist", "voc", "vit_b_16", "integrated_gradients", 0.016),
        ("explanations-voc", "voc", "resnet50", "once:guided_backprop", 0.86),
        ("explanations-coco", "coco", "vit_b_16", "repeat", 0.71),
        ("poison", "cifar10", "resnet18", "repeat, uncertainty", 0.85),
    ],
)
def test_printed_values_are_those_of_the_paper(table, dataset, encoder, method, value):
    block = next(block for block in TABLES[table].blocks if block.dataset == dataset)
    assert block.printed[encoder][method][0] == value


def test_the_preset_decides_what_the_names_of_methods_mean():
    paper, notebook = PRESETS["paper"], PRESETS["notebook"]
    assert paper.method("repeat") == rx.Repeat(estimator="exact", repeats=10, base=rx.Relax(masks=1000))
    assert paper.method("repeat:threshold=otsu").threshold == "otsu"
    assert notebook.method("repeat:threshold=otsu").threshold == "triangle"
    assert notebook.method("repeat:threshold=li").threshold == "li"
    assert notebook.method("relax") == rx.Relax(normalise_uncertainty="sum")
    assert paper.method("repeat:repeats=30").repeats == 30
    assert replace(paper, repeats=2).method("repeat:repeats=30").repeats == 6
    assert paper.method("once:kernel_shap") == rx.KernelShap()
    assert paper.method("repeat:kernel_shap").base == rx.KernelShap()
    assert paper.method("saliency") == rx.Spread(base=rx.Saliency(), by=rx.InputDropout(), passes=10)
    few = replace(paper, samples=5, steps=3)
    assert few.method("once:kernel_shap") == rx.KernelShap(samples=5)
    assert few.method("once:integrated_gradients") == rx.IntegratedGradients(steps=3)
    with pytest.raises(rx.RepeatError, match="unknown method"):
        paper.method("twice:saliency")


def test_a_given_encoder_takes_the_place_of_the_papers_of_its_name(root):
    given = (EncoderSpec(name="torchvision:resnet50", weights="random", fit=224), TINY)
    encoder_specs = Reproduction(encoder_specs=given).encoders(TABLES["sanity"].blocks[0].encoders)
    assert [(spec.label, spec.weights) for spec in encoder_specs] == [
        ("resnet50", "random"), ("vit_b_16", None), ("squeezenet1_1", "random"),
    ]  # fmt: skip
    only = Reproduction(encoder_specs=given, only_these=True).encoders(TABLES["thresholds"].blocks[0].encoders)
    assert [spec.label for spec in only] == ["resnet50", "squeezenet1_1"]


@pytest.mark.parametrize("name", ["torchvision:squeezenet1_1", "timm:squeezenet1_1", "timm:resnet50"])
def test_encoders_with_the_same_label_are_refused(name):
    reproduction = Reproduction(encoder_specs=(TINY, EncoderSpec(name=name, fit=224)))
    with pytest.raises(rx.RepeatError, match="two encoders"):
        reproduction.encoders(["resnet50"])


def test_an_encoder_with_the_label_of_the_papers_is_not_shown_as_the_papers(root):
    named_alike = EncoderSpec(name="timm:resnet50", weights="random")
    for only_these in (False, True):
        reproduction = Reproduction(encoder_specs=(named_alike,), only_these=only_these)
        assert reproduction.encoders(())[0] == named_alike
        with pytest.raises(rx.RepeatError, match="two encoders"):
            reproduction.encoders(("resnet50",))


@pytest.mark.slow
def test_missing_datasets_are_recorded_and_the_rest_can_be_run(root):
    available = Availability(Worker(device="cpu", root=root))
    reproduction = Reproduction(encoder_specs=(TINY,), only_these=True)
    sheets = reproduction.sheets(list(TABLES.values()), available)
    figures = reproduction.figures(list(FIGURES.values()), available)
    missing = {source: needed_by for source, _, needed_by in available.missing}
    assert set(missing) == {"voc", "coco", "fashionmnist", "cifar10+cp", "cifar10+tap", "cifar10+ar"}
    assert missing["voc"][:2] == ("sanity", "ood-eurosat")
    assert missing["cifar10+cp"] == ("poison", "poison-histograms", "poisoned-example")
    assert [(figure.name, spec) for figure, spec in figures] == [
        ("poison-histograms", TINY),
        ("poisoned-example", TINY),
    ]
    assert [sheet.name for sheet in sheets if sheet.contents] == ["poison-cifar10-separable"]
    assert len(sheets) == sum(len(table.blocks) for table in TABLES.values())
    assert len({sheet.name for sheet in sheets}) == len(sheets)


def test_an_encoder_that_cannot_be_randomised_is_missing_only_from_tables_that_need_it(root, monkeypatch):
    def fail(encoder, how):
        raise rx.errors.EncoderError("it has no weights to randomise")

    monkeypatch.setattr("repeat_xai.experiments.settings.randomise_encoder", fail)
    (root / "pictures").mkdir()
    PIL.Image.fromarray(data.chelsea()).save(root / "pictures/cat.png")
    available = Availability(Worker(device="cpu", root=root))
    tables = [
        replace(TABLES[name], blocks=(replace(TABLES[name].blocks[0], dataset=str(root / "pictures")),))
        for name in ("sanity", "complexity")
    ]
    sanity, complexity = Reproduction(encoder_specs=(TINY,), only_these=True).sheets(tables, available)
    assert not sanity.contents
    assert {encoder for encoder, _ in complexity.contents} == {TINY.label}
    assert available.missing == [(TINY.label, "it has no weights to randomise", ("sanity",))]


@pytest.mark.slow
def test_the_command_writes_the_papers_values_beside_ours(root, monkeypatch, capsys):
    """The encoder is a ResNet18 on random weights, under the name of the paper's."""
    monkeypatch.setattr(detection_columns, "detect_poison", partial(detect_poison, draws=2))
    out = root / "out"
    few = ["--images", 5, "--masks", 8, "--repeats", 2, "--device", "cpu", "--data-root", root, "--out", out]
    arguments = ["poison", "--only-these", "--encoder", "torchvision:resnet18=random", *few]
    status, output = run_here(monkeypatch, capsys, "reproduce", *arguments)
    assert status == 0, output.err
    assert "10 of 10 rows to make" in output.err
    assert "not run in poison: cifar10+cp (no file" in output.err
    text = (out / "poison-cifar10-separable.md").read_text()
    assert "Preset paper: 2 repeats, 8 masks, 10 passes of other methods; 200 disturbances" in text
    assert "5 images of cifar10, 5 images of cifar10+separable, drawn by seed 0. Weights: resnet18 random" in text
    assert "(paper 0.850)" in (out / "poison-cifar10-cp.md").read_text()
    assert json.loads((out / "run.json").read_text())["request"]["preset"]["name"] == "paper"
    _, output = run_here(monkeypatch, capsys, "reproduce", *arguments)
    assert "0 of 10 rows to make" in output.err


def test_the_list_has_every_table_and_figure_and_unknown_names_are_refused(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "reproduce", "list")
    assert status == 0
    assert [line.split()[0] for line in output.out.splitlines()] == [*TABLES, *FIGURES]
    status, output = run_here(monkeypatch, capsys, "reproduce", "table 9", "--out", Path("nowhere"))
    assert (status, "unknown table or figure 'table 9'; choose one of: sanity" in output.err) == (2, True)
    status, output = run_here(monkeypatch, capsys, "reproduce", "sanity", "--preset", "mine")
    assert (status, "unknown preset 'mine'" in output.err) == (2, True)
    status, output = run_here(monkeypatch, capsys, "reproduce", "sanity", "--only-these", "--out", Path("nowhere"))
    assert (status, "--only-these leaves out" in output.err) == (2, True)


@pytest.mark.parametrize("encoder", ["torchvision:squeezenet1_1=/none.safetensors", "torchvision:none", "none"])
def test_a_given_encoder_that_cannot_be_loaded_is_refused_before_anything_is_written(
    encoder, tmp_path, monkeypatch, capsys
):
    (tmp_path / "sanity-voc.md").write_text("made before")
    status, output = run_here(
        monkeypatch, capsys, "reproduce", "sanity", "--encoder", encoder, "--data-root", tmp_path, "--out", tmp_path
    )
    assert status != 0
    assert len(output.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sanity-voc.md"]
    assert (tmp_path / "sanity-voc.md").read_text() == "made before"
