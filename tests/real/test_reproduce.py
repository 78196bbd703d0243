"""One command makes every table and figure of the paper for which there are weights and images, and names the rest."""

import json
import re
from functools import partial

import numpy as np
import PIL.Image
import pytest
from command import run_here

from repeat_xai.experiments import detection_columns
from repeat_xai.experiments.paper.printed_figures import FIGURES
from repeat_xai.experiments.paper.printed_tables import TABLES
from repeat_xai.metrics.detection import detect_poison
from repeat_xai.output import results_folder as gallery

SMALL_WORK = (
    "--masks",
    4,
    "--repeats",
    2,
    "--passes",
    2,
    "--samples",
    8,
    "--steps",
    2,
    "--draws",
    1,
    "--device",
    "cpu",
)


@pytest.mark.real
def test_the_whole_paper_runs_through_on_real_weights_and_images(shared, tmp_path, monkeypatch, capsys):
    """Four images of each dataset are used; the contrastive poison of CIFAR-10 is not available here."""
    monkeypatch.setattr(detection_columns, "detect_poison", partial(detect_poison, draws=2))
    for resolution in ("SCREEN_DPI", "PRINT_DPI"):
        monkeypatch.setattr(gallery, resolution, 40)
    out = tmp_path / "out"
    encoder = f"torchvision:squeezenet1_1={shared}/weights/squeezenet1_1.safetensors"
    status, output = run_here(
        monkeypatch, capsys, "reproduce", "all", "--images", 4, "--only-these", "--encoder", encoder,
        "--data-root", shared / "data", "--out", out, *SMALL_WORK,
    )  # fmt: skip
    assert status == 0, output.err
    missing = re.findall(r"not run in (.*): (\S+) \(", output.err)
    assert missing == [("poison, poison-histograms, poisoned-example", "cifar10+cp")]
    for name in FIGURES:
        with PIL.Image.open(out / f"{name}-squeezenet1_1.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 10
        assert (out / f"{name}-squeezenet1_1.pdf").read_bytes().startswith(b"%PDF")
    for name, entry in TABLES.items():
        for suffix in (".md", ".tex", ".csv"):
            assert len(list(out.glob(f"{name}-*{suffix}"))) == len(entry.blocks)
    empty = [path.name for path in out.glob("*.md") if "| squeezenet1_1 |" not in path.read_text()]
    assert empty == ["poison-cifar10-cp.md"]
    page = (out / "index.html").read_text()
    assert page.count("<table") == sum(len(entry.blocks) for entry in TABLES.values())
    titles = re.findall("<h2[^>]*>(.*?)</h2>", page)
    assert len(set(titles)) == len(titles)
    assert json.loads((out / "run.json").read_text())["request"]["preset"]["steps"] == 2
    status, output = run_here(
        monkeypatch, capsys, "reproduce", "sanity", "--images", 4, "--only-these", "--encoder", encoder,
        "--data-root", shared / "data", "--out", out, *SMALL_WORK,
    )  # fmt: skip
    assert (status, "0 of 80 rows to make" in output.err) == (0, True), output.err


@pytest.mark.real
def test_the_papers_own_encoders_run_on_random_weights(shared, tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/VOCdevkit").symlink_to(shared / "data/VOCdevkit")
    encoders = [part for name in ("resnet50", "vit_b_16") for part in ("--encoder", f"torchvision:{name}=random")]
    out = tmp_path / "out"
    status, output = run_here(
        monkeypatch, capsys, "reproduce", "complexity", "--images", 1, *encoders,
        "--data-root", tmp_path / "data", "--out", out, *SMALL_WORK,
    )  # fmt: skip
    assert status == 0, output.err
    assert "not run in complexity: coco" in output.err
    table = (out / "complexity-voc.md").read_text()
    for name, printed in (("resnet50", "9.970"), ("vit_b_16", "9.990")):
        assert re.search(rf"\| {name} \| repeat \| [*]*\d+\.\d{{3}}.* \(paper {printed}\)", table)
