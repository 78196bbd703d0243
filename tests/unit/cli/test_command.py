"""The command as a user runs it: in its own process, with real files."""

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
from skimage import data

import repeat_xai as rx
from repeat_xai.cli import main

COMMAND = [str(Path(sys.executable).parent / "repeat-xai")]
FAST = ["--masks", "6", "--repeats", "2"]
SMALL = ["--encoder", "torchvision:squeezenet1_1", "--weights", "random", "--size", "64"]


def run_here(monkeypatch, capsys, *arguments):
    """The command in this process, for what needs no process of its own."""
    monkeypatch.setattr(sys, "argv", ["repeat-xai", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr()


def run(*arguments, **options):
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "cat.png"
    PIL.Image.fromarray(data.chelsea()).save(path)
    return path


def test_one_photo_gives_a_panel_maps_and_provenance(photo, tmp_path):
    out = tmp_path / "deep" / "out"
    done = run("explain", photo, "--out", out, *FAST, "--seed", 4, "--threshold", "otsu", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    line = json.loads(done.stdout)
    assert line["image"] == str(photo)
    assert line["encoder_calls"] == 14
    assert sorted(p.name for p in out.iterdir()) == ["cat.json", "cat.npz", "cat.png"]
    made = json.loads((out / "cat.json").read_text())
    assert made["method"]["threshold"] == "otsu"
    assert made["encoder"]["name"] == "efficientnet_lite0"
    assert made["encoder"]["pool"] == "avg"
    assert made["seed"] == 4
    again = rx.Explanation.load(out / "cat.npz")
    encoder = rx.load_encoder("efficientnet_lite0")
    method = rx.Repeat(base=rx.Relax(masks=6), repeats=2, threshold="otsu")
    expected = method(encoder, rx.load_image(photo, encoder), seed=4)
    torch.testing.assert_close(again.vote_share, expected.vote_share)
    with PIL.Image.open(out / "cat.png") as panel:
        assert panel.width > 1500


def test_an_interrupted_run_goes_on(photo, tmp_path):
    """Killed after its first image, the same command does the rest and leaves what was done."""
    second = tmp_path / "second.png"
    PIL.Image.fromarray(data.coffee()).save(second)
    out = tmp_path / "out"
    arguments = [*COMMAND, "explain", str(photo), str(second), "--out", str(out), *SMALL, "--masks", "30"]
    first = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not (out / "cat.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130
    assert said.strip() == "repeat-xai: interrupted; run the same command again to go on"
    assert sorted(p.name for p in out.iterdir()) == ["cat.json", "cat.npz", "cat.png"]
    before = (out / "cat.json").read_text()
    done = run(*arguments[1:])
    assert done.returncode == 0
    assert "cat.png: already done" in done.stdout
    assert (out / "second.json").exists()
    assert (out / "cat.json").read_text() == before


def test_bad_images_are_named_and_the_rest_done(photo, tmp_path):
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
    assert sorted(p.name for p in out.iterdir()) == ["cat.json", "cat.npz", "cat.png"]


def test_names_that_clash_are_kept_apart_and_a_folder_stands_for_its_images(tmp_path, monkeypatch, capsys):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        PIL.Image.fromarray(data.chelsea()[:: 1 + (folder == "b")]).save(tmp_path / folder / "cat.png")
    (tmp_path / "a" / "notes.txt").write_text("")
    out = tmp_path / "out"
    arguments = [tmp_path / "a", tmp_path / "b", "--out", out, "--method", "relax", "--masks", 5, "--json", *SMALL]
    status, said = run_here(monkeypatch, capsys, "explain", *arguments)
    assert status == 0
    assert [Path(json.loads(line)["panel"]).name for line in said.out.splitlines()] == ["cat.png", "cat-2.png"]
    assert rx.Explanation.load(out / "cat.npz").vote_share is None


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--encoder", "torchvision:resnet51"], 1, "unknown encoder 'torchvision:resnet51'; did you mean torchvision:"),
        (["--encoder", "torchvision:resnet18", "--weights", "alex.safetensors"], 1, "do not fit"),
        (["--encoder", "torchvision:resnet18", "--weights", "evil.pth"], 1, "refused"),
        (["--device", "tpu"], 2, "tpu"),
        (["--threshold", "median"], 2, "unknown threshold 'median'"),
        (["--votes", "many"], 2, "votes"),
        (["--masks", "0"], 2, "masks"),
        (["--nonsense"], 2, "nonsense"),
        (["--level", "0.2"], 2, "level"),
        (["--out", "taken"], 1, "taken"),
    ],
)
def test_wrong_requests(photo, tmp_path, monkeypatch, capsys, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file where a folder should be")
    safetensors.torch.save_file(torchvision.models.squeezenet1_1().state_dict(), tmp_path / "alex.safetensors")
    torch.save({"a": os.system}, tmp_path / "evil.pth")
    out = [] if "--out" in arguments else ["--out", "out"]
    found, said = run_here(monkeypatch, capsys, "explain", photo, *FAST, *out, *arguments)
    assert found == status
    assert message in said.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_written(photo, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    (out / "cat.png").mkdir(parents=True)
    status, said = run_here(monkeypatch, capsys, "explain", photo, "--out", out, *FAST, *SMALL)
    assert status == 1
    assert "cat.png: cannot be written" in said.err
    assert sorted(p.name for p in out.iterdir()) == ["cat.npz", "cat.png"]


def test_encoders_are_listed(monkeypatch, capsys):
    status, said = run_here(monkeypatch, capsys, "list", "encoders")
    assert status == 0
    assert said.out.splitlines()[0] == "efficientnet_lite0"
    assert "timm:vit_base_patch16_224" in said.out
    assert run_here(monkeypatch, capsys, "list", "nonsense")[0] == 2
