"""Models of transformers that cannot be loaded from a folder or the hub are refused in one line."""

import json
import os
import shutil
import subprocess
import sys

import huggingface_hub
import pytest
import torch
import transformers
from tiny_models import CROPPED, SEEN, SMALL

import repeat_xai as rx

images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def faulty_copy(folder, path, kind):
    """Return a copy of a good folder that has one fault."""
    if kind == "missing":
        return path / "missing"
    good = {"text": "bert", "film": "video"}.get(kind, "vit")
    shutil.copytree(folder(good), path, dirs_exist_ok=True)
    processor = transformers.ViTImageProcessor
    if kind == "no config":
        (path / "config.json").unlink()
    elif kind == "broken config":
        (path / "config.json").write_text("{")
    elif kind == "no weights":
        (path / "model.safetensors").unlink()
    elif kind == "cut short":
        (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:500])
    elif kind == "evil":
        (path / "model.safetensors").unlink()
        torch.save({"layernorm.weight": Evil()}, path / "pytorch_model.bin")
    elif kind == "others":
        transformers.Dinov2Model(transformers.Dinov2Config(**SMALL, **SEEN)).save_pretrained(path / "other")
        shutil.copy(path / "other" / "model.safetensors", path / "model.safetensors")
    elif kind == "misshapen":
        transformers.ViTModel(transformers.ViTConfig(**SMALL | SEEN | {"patch_size": 4})).save_pretrained(
            path / "other"
        )
        shutil.copy(path / "other" / "model.safetensors", path / "model.safetensors")
    elif kind == "no processor":
        (path / "preprocessor_config.json").unlink()
    elif kind == "no resize":
        processor(do_resize=False).save_pretrained(path)
    elif kind == "no crop":
        transformers.CLIPImageProcessor(do_center_crop=False).save_pretrained(path)
    elif kind == "larger crop":
        transformers.CLIPImageProcessor(size={"shortest_edge": 20}, crop_size=32).save_pretrained(path)
    elif kind == "blue first":
        transformers.MobileViTImageProcessor(**CROPPED).save_pretrained(path)
    elif kind == "its own way":
        transformers.LevitImageProcessor(**CROPPED).save_pretrained(path)
    return path


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("missing", {}, "no such folder"),
        ("no config", {}, "cannot be read as a model"),
        ("broken config", {}, "cannot be read as a model"),
        ("no weights", {}, "cannot be loaded"),
        ("cut short", {}, "cannot be loaded"),
        ("evil", {}, "cannot be loaded"),
        ("others", {}, "do not fit the model: .* tensors missing"),
        ("misshapen", {}, "do not fit the model: .* tensors of another shape"),
        ("no processor", {}, "no image processor"),
        ("no resize", {}, "not all of one size"),
        ("no crop", {}, "not all of one size"),
        ("larger crop", {}, "cannot crop"),
        ("blue first", {}, "MobileViT.* does more"),
        ("its own way", {}, "Levit.* does more"),
        ("text", {}, "'bert', which is no vision model"),
        ("film", {}, "takes no images"),
        ("vit", {"weights": "file.safetensors"}, "has its own weights"),
        ("vit", {"pool": "best"}, "unknown pool 'best'"),
        ("vit", {"size": 4}, "takes no images of 4×4"),
    ],
)
def test_a_faulty_folder_is_refused_in_one_line(folder, tmp_path, capfd, kind, options, message):
    path = faulty_copy(folder, tmp_path, kind)
    capfd.readouterr()
    with pytest.raises(rx.RepeatError, match=message) as caught:
        rx.load_encoder(f"hf:{path}", **options)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_pooling_that_the_model_does_not_have_is_refused(folder):
    for kind in ("siglip", "swin", "convnext"):
        with pytest.raises(rx.RepeatError, match="class token"):
            rx.load_encoder(f"hf:{folder(kind)}", pool="cls")
    with pytest.raises(rx.RepeatError, match="no pooling of its own"):
        rx.load_encoder(f"hf:{folder('mae')}", pool="head")


def test_without_the_hub_a_name_is_refused(monkeypatch):
    def unreachable(*args, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    with pytest.raises(rx.RepeatError, match=r"the hub cannot be asked \(no route\)"):
        rx.load_encoder("hf:nobody/has-this-model")


def test_without_transformers_the_error_names_what_to_install(monkeypatch, folder):
    where = folder("vit")
    for library in ("transformers", "transformers.utils"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(rx.RepeatError, match=r"pip install 'repeat-xai\[hf\]'"):
        rx.load_encoder(f"hf:{where}")
    with pytest.raises(rx.RepeatError, match=r"unknown encoder 'hf:'; give .*hf:NAME_OR_FOLDER"):
        rx.load_encoder("hf:")


CACHED = """
import sys, repeat_xai as rx
assert "transformers" not in sys.modules
encoder = rx.load_encoder("hf:someone/tiny")
print(encoder.name, encoder.weights)
"""


@pytest.mark.slow
def test_a_model_in_the_cache_is_loaded_without_the_hub(folder, tmp_path):
    commit, home = "0123456789abcdef0123456789abcdef01234567", tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(folder("vit"), home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    done = subprocess.run(
        [sys.executable, "-c", CACHED],
        env=os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"hf:someone/tiny someone/tiny at commit {commit}\n", "")


def name_a_file_outside(path):
    """Write an index of the weights that names a file above the folder."""
    (path / "model.safetensors").rename(path.parent / "secret.safetensors")
    index = {"metadata": {}, "weight_map": {"layernorm.weight": "../secret.safetensors"}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def link_to_a_file_outside(path):
    (path / "model.safetensors").rename(path.parent / "secret.safetensors")
    (path / "model.safetensors").symlink_to("../secret.safetensors")


def make_a_fifo(path):
    (path / "model.safetensors").unlink()
    os.mkfifo(path / "model.safetensors")


HOSTILE = {
    "an index that leads out": (name_a_file_outside, "leads out of the folder"),
    "a link that leads out": (link_to_a_file_outside, "leads out of the folder"),
    "a FIFO": (make_a_fifo, "'model.safetensors' is not a regular file"),
    "a configuration nested deep": (
        lambda path: (path / "config.json").write_text('{"a":' * 50_000 + "1" + "}" * 50_000),
        "nested too deep",
    ),
    "a configuration that is a list": (lambda path: (path / "config.json").write_text("[1]"), "is no object"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_folder_opens_nothing_outside_itself(kind, folder, tmp_path):
    spoil, message = HOSTILE[kind]
    spoil(faulty_copy(folder, tmp_path / "model", kind))
    with pytest.raises(rx.RepeatError, match=f"cannot be read as a model of transformers .*{message}") as caught:
        rx.load_encoder(f"hf:{tmp_path / 'model'}")
    assert "\n" not in str(caught.value)


def test_a_folder_of_the_hubs_cache_is_read_through_its_links(folder, tmp_path):
    snapshot, blobs = tmp_path / "snapshots" / "1a2b", tmp_path / "blobs"
    shutil.copytree(folder("vit"), blobs)
    snapshot.mkdir(parents=True)
    for file in blobs.iterdir():
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    assert torch.equal(rx.load_encoder(f"hf:{snapshot}")(images), rx.load_encoder(f"hf:{blobs}")(images))
