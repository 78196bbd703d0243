"""The paper as data: its tables whole, and what is at hand and what is not told apart."""

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
from repeat_xai.experiments.paper.printed_tables import ENTRIES, TABLES
from repeat_xai.experiments.paper.reproduction import Reproduction, Stock
from repeat_xai.experiments.settings import Network
from repeat_xai.experiments.worker import Worker
from repeat_xai.metrics.detection.poison_detection import detection

TINY = Network(name="torchvision:squeezenet1_1", weights="random", fit=224)


@pytest.fixture
def root(tmp_path):
    """Twelve images of CIFAR-10's kind, and twelve of EuroSAT's."""
    crops = [data.chelsea()[i : i + 32, i : i + 32] for i in range(0, 120, 10)]
    (tmp_path / "cifar10").mkdir()
    np.savez(tmp_path / "cifar10/clean.npz", images=np.stack(crops), labels=np.arange(12) % 10)
    for number, crop in enumerate(crops):
        path = tmp_path / f"eurosat/2750/Forest/Forest_{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(crop).resize((64, 64)).save(path)
    return tmp_path


def test_every_table_prints_a_value_for_each_of_the_papers_lines():
    for entry in ENTRIES:
        assert entry.where
        for block in entry.blocks:
            for lines in block.printed.values():
                for name, values in lines.items():
                    assert len(values) == len(block.columns), (entry.name, name)
    assert len(TABLES) == len(ENTRIES) == 12


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
def test_values_are_those_of_the_paper(table, dataset, encoder, method, value):
    block = next(block for block in TABLES[table].blocks if block.dataset == dataset)
    assert block.printed[encoder][method][0] == value


def test_names_of_methods_mean_what_the_preset_says():
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
    given = (Network(name="torchvision:resnet50", weights="random", fit=224), TINY)
    found = Reproduction(networks=given).encoders(TABLES["sanity"].blocks[0].encoders)
    assert [(network.label, network.weights) for network in found] == [
        ("resnet50", "random"), ("vit_b_16", None), ("squeezenet1_1", "random"),
    ]  # fmt: skip
    only = Reproduction(networks=given, only_these=True).encoders(TABLES["thresholds"].blocks[0].encoders)
    assert [network.label for network in only] == ["resnet50", "squeezenet1_1"]


@pytest.mark.parametrize("name", ["torchvision:squeezenet1_1", "timm:squeezenet1_1", "timm:resnet50"])
def test_encoders_that_a_table_would_call_the_same_are_refused(name):
    asked = Reproduction(networks=(TINY, Network(name=name, fit=224)))
    with pytest.raises(rx.RepeatError, match=f"two encoders are called {name.split(':')[1]} in the table"):
        asked.encoders(["resnet50"])


def test_another_encoder_is_not_shown_as_the_papers(root):
    named_alike = Network(name="timm:resnet50", weights="random")
    for only_these in (False, True):
        asked = Reproduction(networks=(named_alike,), only_these=only_these)
        assert asked.encoders(())[0] == named_alike
        with pytest.raises(rx.RepeatError, match="two encoders are called resnet50"):
            asked.encoders(("resnet50",))


def test_what_is_missing_is_told_and_the_rest_can_be_run(root):
    stock = Stock(Worker(device="cpu", root=root))
    asked = Reproduction(networks=(TINY,), only_these=True)
    sheets, figures = asked.sheets(ENTRIES, stock), asked.figures(list(FIGURES.values()), stock)
    told = {what: entries for what, _, entries in stock.missing}
    assert set(told) == {"voc", "coco", "fashionmnist", "cifar10+cp", "cifar10+tap", "cifar10+ar"}
    assert told["voc"][:2] == ("sanity", "ood-eurosat")
    assert told["cifar10+cp"] == ("poison", "poison-histograms", "poisoned-example")
    assert [(entry.name, network) for entry, network in figures] == [
        ("poison-histograms", TINY),
        ("poisoned-example", TINY),
    ]
    assert [sheet.name for sheet in sheets if sheet.cases] == ["poison-cifar10-separable"]
    assert len(sheets) == sum(len(entry.blocks) for entry in ENTRIES)
    assert len({sheet.name for sheet in sheets}) == len(sheets)


def test_an_encoder_that_cannot_be_randomised_is_missing_only_where_it_has_to_be(root, monkeypatch):
    def fails(encoder, how):
        raise rx.errors.EncoderError("it has no weights to randomise")

    monkeypatch.setattr("repeat_xai.experiments.settings.randomised", fails)
    (root / "pictures").mkdir()
    PIL.Image.fromarray(data.chelsea()).save(root / "pictures/cat.png")
    stock = Stock(Worker(device="cpu", root=root))
    entries = [
        replace(TABLES[name], blocks=(replace(TABLES[name].blocks[0], dataset=str(root / "pictures")),))
        for name in ("sanity", "complexity")
    ]
    sanity, complexity = Reproduction(networks=(TINY,), only_these=True).sheets(entries, stock)
    assert not sanity.cases
    assert {encoder for encoder, _ in complexity.cases} == {TINY.label}
    assert stock.missing == [(TINY.label, "it has no weights to randomise", ("sanity",))]


def test_by_command_a_table_has_what_the_paper_prints_beside_ours(root, monkeypatch, capsys):
    """Also that a ResNet18, as the paper has it, runs on random weights."""
    monkeypatch.setattr(detection_columns, "detection", partial(detection, draws=2))
    out = root / "out"
    few = ["--images", 5, "--masks", 8, "--repeats", 2, "--device", "cpu", "--data-root", root, "--out", out]
    asked = ["poison", "--only-these", "--encoder", "torchvision:resnet18=random", *few]
    status, said = run_here(monkeypatch, capsys, "reproduce", *asked)
    assert status == 0, said.err
    assert "10 of 10 rows to make" in said.err
    assert "not run in poison: cifar10+cp (no file" in said.err
    text = (out / "poison-cifar10-separable.md").read_text()
    assert "Preset paper: 2 repeats, 8 masks, 10 passes of other methods; 200 disturbances" in text
    assert "5 images of cifar10, 5 images of cifar10+separable, drawn by seed 0. Weights: resnet18 random" in text
    assert "(paper 0.850)" in (out / "poison-cifar10-cp.md").read_text()
    assert json.loads((out / "run.json").read_text())["asked"]["preset"]["name"] == "paper"
    _, said = run_here(monkeypatch, capsys, "reproduce", *asked)
    assert "0 of 10 rows to make" in said.err


def test_the_list_has_every_table_and_nonsense_is_refused(monkeypatch, capsys):
    status, said = run_here(monkeypatch, capsys, "reproduce", "list")
    assert status == 0
    assert [line.split()[0] for line in said.out.splitlines()] == [*TABLES, *FIGURES]
    status, said = run_here(monkeypatch, capsys, "reproduce", "table 9", "--out", Path("nowhere"))
    assert (status, "unknown table or figure 'table 9'; choose one of: sanity" in said.err) == (2, True)
    status, said = run_here(monkeypatch, capsys, "reproduce", "sanity", "--preset", "mine")
    assert (status, "unknown preset 'mine'" in said.err) == (2, True)
    status, said = run_here(monkeypatch, capsys, "reproduce", "sanity", "--only-these", "--out", Path("nowhere"))
    assert (status, "say by --encoder which are left" in said.err) == (2, True)


@pytest.mark.parametrize("encoder", ["torchvision:squeezenet1_1=/none.safetensors", "torchvision:none", "none"])
def test_an_encoder_that_was_given_and_cannot_be_had_leaves_all_as_it_was(encoder, tmp_path, monkeypatch, capsys):
    (tmp_path / "sanity-voc.md").write_text("made before")
    status, said = run_here(
        monkeypatch, capsys, "reproduce", "sanity", "--encoder", encoder, "--data-root", tmp_path, "--out", tmp_path
    )
    assert status != 0
    assert len(said.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sanity-voc.md"]
    assert (tmp_path / "sanity-voc.md").read_text() == "made before"
