"""Tests of the command as a user runs it: in its own process, with real files."""

import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import safetensors.torch
import torch
import torchvision
from command import SMALL, run_here, without_image_warnings
from skimage import data

import repeat_xai as rx
from repeat_xai.output import results_folder as gallery

demo = importlib.import_module("repeat_xai.cli.demo")
COMMAND = [str(Path(sys.executable).parent / "repeat-xai")]
FAST = ["--estimator", "exact", "--masks", "6", "--repeats", "2"]


def run(*arguments, **options):
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.slow
def test_one_photo_gives_a_panel_maps_and_provenance(photo, tmp_path):
    out = tmp_path / "deep" / "out"
    done = run("explain", photo, "--out", out, *FAST, "--seed", 4, "--threshold", "otsu", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    line = json.loads(done.stdout)
    assert line["image"] == str(photo)
    assert line["encoder_calls"] == 13
    assert sorted(p.name for p in out.iterdir()) == ["cat.json", "cat.npz", "cat.png", "index.html"]
    record = json.loads((out / "cat.json").read_text())
    assert record["method"]["threshold"] == "otsu"
    assert record["encoder"]["name"] == "efficientnet_lite0"
    assert record["encoder"]["pool"] == "avg"
    assert record["seed"] == 4
    again = rx.Explanation.load(out / "cat.npz")
    encoder = rx.load_encoder("efficientnet_lite0")
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=6), repeats=2, threshold="otsu")
    expected = method(encoder, rx.load_image(photo, encoder), seed=4)
    torch.testing.assert_close(again.vote_share, expected.vote_share)
    with PIL.Image.open(out / "cat.png") as panel:
        assert panel.width > 1500


def handle_interrupts():
    """Handle Ctrl-C as in a terminal; what a shell runs in the background ignores it, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_an_interrupted_run_goes_on(photo, tmp_path):
    """After an interrupt, the same command explains the other images and leaves finished results as they are."""
    others = [tmp_path / f"other{i}.png" for i in range(8)]
    for i, other in enumerate(others):
        PIL.Image.fromarray(data.coffee()[i:]).save(other)
    out = tmp_path / "out"
    arguments = ["explain", photo, *others, "--out", out, *SMALL, "--estimator", "exact", "--masks", 30]
    command = [*COMMAND, *map(str, arguments)]
    first = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=handle_interrupts
    )
    deadline = time.monotonic() + 200
    while not (out / "cat.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 130
    assert without_image_warnings(errors).strip() == "repeat-xai: interrupted; run the same command again to go on"
    done = {path.stem for path in out.glob("*.json")}
    assert "cat" in done
    assert "other7" not in done
    assert {path.suffix for path in out.iterdir()} == {".json", ".npz", ".png"}
    before = (out / "cat.json").read_text()
    again = run(*arguments)
    assert again.returncode == 0
    assert again.stdout.count("(already done)") == len(done)
    assert len(list(out.glob("*.json"))) == 9
    assert (out / "cat.json").read_text() == before


@pytest.mark.slow
def test_bad_images_are_named_and_the_others_explained(photo, tmp_path):
    jpeg = tmp_path / "cut.jpg"
    PIL.Image.fromarray(data.coffee()).save(jpeg)
    jpeg.write_bytes(jpeg.read_bytes()[:5000])
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.png").write_text("hello")
    PIL.Image.new("RGB", (1, 1)).save(tmp_path / "dot.png")
    PIL.Image.fromarray(np.full((20, 20), np.nan, np.float32)).save(tmp_path / "nan.tiff")
    PIL.Image.new("1", (20_000, 5_000)).save(tmp_path / "bomb.png")
    bad = ["missing.png", "empty.png", "text.png", "cut.jpg", "dot.png", "nan.tiff", "bomb.png"]
    out = tmp_path / "out"
    done = run("explain", *bad[:4], photo.name, *bad[4:], "--data-root", tmp_path, "--out", out, *FAST)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 1
    assert len(lines) == len(bad)
    for name, line in zip(bad, lines, strict=True):
        assert line.startswith(f"repeat-xai: {tmp_path / name}: ")
    assert sorted(p.name for p in out.iterdir()) == ["cat.json", "cat.npz", "cat.png", "index.html"]


@pytest.mark.slow
def test_names_that_clash_are_kept_apart_and_a_folder_stands_for_its_images(tmp_path, monkeypatch, capsys):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        PIL.Image.fromarray(data.chelsea()[:: 1 + (folder == "b")]).save(tmp_path / folder / "cat.png")
    (tmp_path / "a" / "notes.txt").write_text("")
    out = tmp_path / "out"
    arguments = [tmp_path / "a", tmp_path / "b", "--out", out, "--method", "relax", "--masks", 5, "--json", *SMALL]
    status, output = run_here(monkeypatch, capsys, "explain", *arguments)
    assert status == 0
    assert [Path(json.loads(line)["panel"]).name for line in output.out.splitlines()] == ["cat.png", "cat-2.png"]
    assert rx.Explanation.load(out / "cat.npz").vote_share is None


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--encoder", "torchvision:resnet51"], 2, "unknown encoder 'torchvision:resnet51'; did you mean torchvision:"),
        (["--encoder", "torchvision:resnet18", "--weights", "alex.safetensors"], 1, "do not fit"),
        (["--encoder", "torchvision:resnet18", "--weights", "evil.pth"], 1, "refused"),
        (["--device", "tpu"], 2, "tpu"),
        (["--threshold", "median"], 2, "unknown threshold 'median'"),
        (["--votes", "many"], 2, "votes"),
        (["--masks", "0"], 2, "masks"),
        (["--nonsense"], 2, "nonsense"),
        (["--level", "0.2"], 2, "level"),
        (["--budget", "many"], 2, "budget must be auto or a whole number"),
        (["--tolerance", "0"], 2, "tolerance"),
        (["--protocol", "paper", "--size", "64"], 2, "--protocol paper shows encoders 224×224 pixels"),
        (["--out", "taken"], 1, "taken"),
    ],
)
def test_wrong_requests(photo, tmp_path, monkeypatch, capsys, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file where a folder should be")
    safetensors.torch.save_file(torchvision.models.squeezenet1_1().state_dict(), tmp_path / "alex.safetensors")
    torch.save({"a": os.system}, tmp_path / "evil.pth")
    out = [] if "--out" in arguments else ["--out", "out"]
    actual, output = run_here(monkeypatch, capsys, "explain", photo, *FAST, *out, *arguments)
    assert actual == status
    assert message in output.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written(photo, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    status, output = run_here(monkeypatch, capsys, "explain", photo, "--out", tmp_path / "out", *FAST, *SMALL)
    assert status == 1
    assert "cat.npz: cannot be written (No space left on device)" in output.err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
def test_the_users_own_pictures_are_never_written_over(photo, tmp_path, monkeypatch, capsys):
    before = photo.read_bytes()
    status, _ = run_here(monkeypatch, capsys, "explain", photo, "--out", tmp_path, *FAST, *SMALL)
    assert status == 0
    assert photo.read_bytes() == before
    assert (tmp_path / "cat-2.png").exists()
    status, output = run_here(monkeypatch, capsys, "explain", tmp_path, "--out", tmp_path, *FAST, *SMALL)
    assert status == 2
    assert "among the images" in output.err


@pytest.mark.slow
def test_results_of_another_image_of_the_same_name_are_kept(photo, tmp_path, monkeypatch, capsys):
    other = tmp_path / "other" / "cat.png"
    other.parent.mkdir()
    PIL.Image.fromarray(data.coffee()).save(other)
    out = tmp_path / "out"
    for path in (photo, other, photo, other):
        assert run_here(monkeypatch, capsys, "explain", path, "--out", out, *FAST, *SMALL)[0] == 0
    assert len(list(out.iterdir())) == 7
    names = {name: json.loads((out / f"{name}.json").read_text())["photo"]["name"] for name in ("cat", "cat-2")}
    assert names == {"cat": str(photo), "cat-2": str(other)}


@pytest.mark.slow
def test_options_that_leave_the_result_as_it_is_find_it_done(photo, tmp_path, monkeypatch, capsys):
    def done(*options):
        status, output = run_here(monkeypatch, capsys, "explain", *options, "--out", tmp_path / "out", *SMALL, "--json")
        assert status == 0
        return json.loads(output.out)["already_done"]

    base = [photo, *FAST]
    assert not done(*base)
    assert done(*base)
    assert done(*base, "--chunk", 3)
    monkeypatch.chdir(tmp_path)
    assert done(photo.name, *FAST)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [["--seed", 1], ["--level", 0.8], ["--method", "repeat:votes=binary"], ["--cells", 5], ["--keep", 0.4]],
    ids=lambda change: change[0],
)
def test_only_what_changes_the_result_is_refused_in_a_folder_with_results(photo, tmp_path, monkeypatch, capsys, change):
    def explain(out, *options):
        return run_here(
            monkeypatch, capsys, "explain", photo, "--out", tmp_path / out, *FAST, *SMALL, "--json", *options
        )

    assert explain("out")[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    status, output = explain("out", *change)
    assert (status, output.out) == (2, "")
    assert f"{tmp_path / 'out' / 'cat.json'}: holds results with " in output.err
    assert "choose another folder" in output.err
    assert len(without_image_warnings(output.err).splitlines()) == 1
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    status, output = explain("other", *change)
    assert (status, json.loads(output.out)["already_done"]) == (0, False)
    assert json.loads(explain("out")[1].out)["already_done"]


@pytest.mark.slow
def test_results_whose_rewriting_was_interrupted_do_not_count_as_done(photo, tmp_path, monkeypatch, capsys):
    arguments = ["explain", photo, "--out", tmp_path / "out", *FAST, *SMALL]
    assert run_here(monkeypatch, capsys, *arguments)[0] == 0
    (tmp_path / "out" / "cat.png").unlink()  # only results that are not whole are written again
    with monkeypatch.context() as broken:
        broken.setattr(gallery, "panel", interrupt)
        assert run_here(monkeypatch, capsys, *arguments)[0] == 130
    _, output = run_here(monkeypatch, capsys, *arguments, "--json")
    assert not json.loads(output.out)["already_done"]
    assert rx.Explanation.load(tmp_path / "out" / "cat.npz").provenance["seed"] == 0


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_every_option_reaches_the_method(photo, tmp_path, monkeypatch, capsys):
    options = ["--encoder", "timm:vit_tiny_patch16_224", "--weights", "random", "--pool", "avg", "--size", 64]
    options += ["--estimator", "fast", "--budget", 300, "--tolerance", 0.5]
    options += ["--masks", 12, "--repeats", 3, "--threshold", "li", "--votes", "binary", "--similarity", "rbf"]
    options += ["--cells", 4, "--keep", 0.6, "--mask-style", "rise", "--level", 0.8, "--seed", 7, "--device", "cpu"]
    assert run_here(monkeypatch, capsys, "explain", photo, "--out", tmp_path / "out", *options)[0] == 0
    record = json.loads((tmp_path / "out" / "cat.json").read_text())
    assert record["method"] == {
        "name": "Repeat",
        "base": {
            "name": "Relax",
            "masks": 12,
            "grid": {"name": "Grid", "cells": 4, "keep": 0.6, "style": "rise"},
            "similarity": {"name": "Rbf", "gamma": None},
            "normalise": "mask_sum",
            "normalise_uncertainty": "mask_sum",
            "target": None,
        },
        "estimator": "fast",
        "repeats": 3,
        "threshold": "li",
        "votes": "binary",
        "budget": 300,
        "tolerance": 0.5,
    }
    assert (record["encoder"]["name"], record["encoder"]["pool"]) == ("timm:vit_tiny_patch16_224", "avg")
    assert record["encoder"]["weights"] == "random"
    assert (record["photo"]["input_size"], record["level"], record["seed"]) == ([64, 64], 0.8, 7)
    assert record["image"]["preprocessing"]["resize"] == 71
    assert record["encoder_calls"] == 5 * 64 + 1, "the budget is rounded up to whole blocks of 64 masks"


@pytest.mark.slow
def test_odd_arguments_do_not_keep_other_images_from_being_explained(photo, tmp_path, monkeypatch, capsys):
    (tmp_path / "empty").mkdir()
    odd = tmp_path / "[red]$5 & $6 çat.png"
    odd.write_bytes(photo.read_bytes())
    long = tmp_path / ("long" * 62 + ".png")
    long.write_bytes(photo.read_bytes())
    arguments = [tmp_path / "empty", "x" * 300, odd, long, "--out", tmp_path / "out", *FAST, *SMALL]
    status, output = run_here(monkeypatch, capsys, "explain", *arguments)
    assert status == 1
    assert len(without_image_warnings(output.err).splitlines()) == 2
    assert f"{tmp_path / 'empty'}: a folder with no JPEG" in output.err
    assert (tmp_path / "out" / f"{odd.stem}.json").exists()
    assert len(list((tmp_path / "out").glob("long*.json"))) == 1


@pytest.mark.slow
def test_the_demo(tmp_path, monkeypatch, capsys):
    quick = rx.Repeat(estimator="exact", base=rx.Relax(masks=4), repeats=2)
    monkeypatch.setattr(demo, "Repeat", lambda: quick)
    status, output = run_here(monkeypatch, capsys, "demo", "--out", tmp_path / "demo")
    assert status == 0
    assert f"The pictures are in {tmp_path / 'demo'}" in output.out
    assert f"Open {tmp_path / 'demo' / 'index.html'} in a browser" in output.out
    names = ("astronaut", "chelsea", "coffee", "rocket")
    assert sorted(p.stem for p in (tmp_path / "demo").glob("*.png")) == sorted(names)


def test_encoders_are_listed(monkeypatch, capsys):
    status, output = run_here(monkeypatch, capsys, "list", "encoders")
    assert status == 0
    assert output.out.splitlines()[0] == "efficientnet_lite0"
    assert "timm:vit_base_patch16_224" in output.out
    assert run_here(monkeypatch, capsys, "list", "nonsense")[0] == 2
