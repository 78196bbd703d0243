"""Files of weights: those that fit are loaded, all others are refused in one line, and no code in them is run."""

import pickle

import pytest
import safetensors.torch
import timm
import torch
import torchvision
from torch import nn

import repeat_xai as rx

batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"state_dict": s}, lambda s: {"module." + k: s[k] for k in s}])
@pytest.mark.parametrize("name", ["torchvision:resnet18", "timm:resnet18"])
def test_a_state_dict_with_a_classifier_is_loaded(tmp_path, name, wrap):
    make = torchvision.models.resnet18 if name.startswith("torchvision") else lambda: timm.create_model("resnet18")
    network = make().eval()
    torch.save(wrap(network.state_dict()), tmp_path / "w.pth")
    encoder = rx.load_encoder(name, weights=tmp_path / "w.pth")
    network.fc = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert "sha256" in encoder.weights


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def write_weights(path, kind):
    good = torchvision.models.resnet18().state_dict()
    if kind == "missing":
        safetensors.torch.save_file({k: v for k, v in good.items() if k != "conv1.weight"}, path)
    elif kind == "misshapen":
        safetensors.torch.save_file(good | {"conv1.weight": torch.zeros(64, 1, 7, 7)}, path)
    elif kind == "unknown":
        safetensors.torch.save_file(good | {"extra.weight": torch.zeros(1)}, path)
    elif kind == "mistyped":
        safetensors.torch.save_file(good | {"conv1.weight": torch.zeros(64, 3, 7, 7, dtype=torch.int8)}, path)
    elif kind == "numbered":
        torch.save({0: torch.zeros(1)}, path)
    elif kind == "text":
        path.write_text("electronic mail")
    elif kind == "evil":
        torch.save({"conv1.weight": Evil()}, path)
    elif kind == "plain pickle":
        path.write_bytes(pickle.dumps(Evil()))
    elif kind == "no tensors":
        torch.save({"epoch": 3}, path)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut short":
        safetensors.torch.save_file(good, path)
        path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("kind", "suffix", "message"),
    [
        ("missing", "safetensors", r"1 tensors missing, first 'conv1\.weight'"),
        ("misshapen", "safetensors", "1 tensors of another shape"),
        ("unknown", "safetensors", r"1 tensors unknown, first 'extra\.weight'"),
        ("mistyped", "pt", "1 tensors of another type"),
        ("numbered", "pth", "no tensors"),
        ("text", "pt", "cannot be read as weights|refused"),
        ("evil", "pth", "refused"),
        ("plain pickle", "pkl", "refused"),
        ("no tensors", "pth", "no tensors"),
        ("empty", "pth", "empty"),
        ("cut short", "safetensors", "not a safetensors file"),
        ("nothing", "pth", "no such file"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(tmp_path, capsys, kind, suffix, message):
    path = tmp_path / f"w.{suffix}"
    write_weights(path, kind)
    with pytest.raises(rx.RepeatError, match=rf"w\.{suffix}.*{message}") as caught:
        rx.load_encoder("torchvision:resnet18", weights=path)
    assert "\n" not in str(caught.value)
    assert "must not run" not in capsys.readouterr().out
