"""Weights that must be downloaded: without a network one line says so, quickly; with one nothing is printed."""

import os
import subprocess
import sys

import pytest
import safetensors.torch
import timm
import torch
import torchvision

import repeat_xai as rx

MAX_SECONDS = 10

LOADING = """
import sys, time
import repeat_xai as rx
import timm, huggingface_hub, torchvision
began = time.perf_counter()
try:
    print(rx.load_encoder(sys.argv[1]).weights)
except rx.RepeatError as error:
    print(error)
print(time.perf_counter() - began)
"""


def load_without_network(name, home):
    """Load an encoder in a process that finds nobody at the hub's address; return its line and the seconds it took."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADING, name],
        env=os.environ | {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    line, seconds = done.stdout.splitlines()
    return line, float(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm:test_resnet", "hf:facebook/dinov2-small"])
def test_without_a_network_a_name_is_refused_quickly_in_one_line(tmp_path, name):
    line, seconds = load_without_network(name, tmp_path)
    assert line.startswith(f"{name}: ")
    assert "go online once" in line
    assert seconds < MAX_SECONDS


@pytest.mark.slow
def test_timms_weights_that_were_downloaded_before_are_loaded_without_a_network(tmp_path):
    config = timm.get_pretrained_cfg("test_resnet")
    home = tmp_path / "hub" / f"models--{config.hf_hub_id.replace('/', '--')}"
    (home / "snapshots" / "1a2b").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("1a2b")
    weights = timm.create_model("test_resnet").state_dict()
    safetensors.torch.save_file(weights, home / "snapshots" / "1a2b" / "model.safetensors")
    line, seconds = load_without_network("timm:test_resnet", tmp_path)
    assert line == f"timm test_resnet.{config.tag}"
    assert seconds < MAX_SECONDS


def test_torchvision_downloads_without_printing(tmp_path, monkeypatch, capfd):
    network = torchvision.models.squeezenet1_1()

    def download(url, path, hash_prefix=None, progress=True):
        assert not progress
        torch.save(network.state_dict(), path)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    encoder = rx.load_encoder("torchvision:squeezenet1_1", device="cpu")
    assert capfd.readouterr() == ("", "")
    assert torch.equal(next(encoder.module.parameters()), network.features[0].weight)
