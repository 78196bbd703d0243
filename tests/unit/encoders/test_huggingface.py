"""Vision models of transformers, tiny and untrained, saved to a folder as their makers save them."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys

import huggingface_hub
import pytest
import safetensors.torch
import torch
import transformers
from skimage import data

import repeat_xai as rx

images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
SEEN = {"image_size": 32, "patch_size": 8}
TEXT = {"vocab_size": 50, "max_position_embeddings": 8, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1}
STAGES = {"hidden_sizes": [8, 16, 32, 64], "depths": [1, 1, 1, 1]}
CROPPED = {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}}
SQUEEZED = CROPPED | {"size": {"height": 36, "width": 36}, "do_center_crop": True}
SQUARE = {"size": {"height": 32, "width": 32}}


def models():
    """Every kind: the model as it is published, and its image processor."""
    t = transformers
    vision, text = SMALL | SEEN, SMALL | TEXT
    clip = t.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    siglip = t.SiglipConfig(text_config=text, vision_config=vision)
    vit = t.ViTImageProcessor(**SQUARE)
    return {
        "dinov2": (
            lambda: t.Dinov2Model(t.Dinov2Config(**vision | {"image_size": 40})),
            t.BitImageProcessor(**CROPPED),
        ),
        "registers": (
            lambda: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(**vision, num_register_tokens=3)),
            t.BitImageProcessor(**CROPPED),
        ),
        "vit": (lambda: t.ViTModel(t.ViTConfig(**vision)), vit),
        "clip": (lambda: t.CLIPModel(clip), t.CLIPImageProcessor(**CROPPED)),
        "clip_vision": (lambda: t.CLIPVisionModel(clip.vision_config), t.CLIPImageProcessor(**CROPPED)),
        "siglip": (lambda: t.SiglipModel(siglip), t.SiglipImageProcessor(**SQUARE)),
        "siglip_vision": (lambda: t.SiglipVisionModel(siglip.vision_config), t.SiglipImageProcessor(**SQUARE)),
        "mae": (
            lambda: t.ViTMAEForPreTraining(
                t.ViTMAEConfig(**vision, decoder_hidden_size=32, decoder_num_hidden_layers=1)
            ),
            vit,
        ),
        "beit": (lambda: t.BeitModel(t.BeitConfig(**vision)), t.BeitImageProcessor(**SQUEEZED)),
        "deit": (lambda: t.DeiTModel(t.DeiTConfig(**vision)), t.DeiTImageProcessor(**SQUEEZED)),
        "swin": (
            lambda: t.SwinModel(
                t.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], num_heads=[1, 2], window_size=4)
            ),
            vit,
        ),
        "convnext": (
            lambda: t.ConvNextModel(t.ConvNextConfig(**STAGES)),
            t.ConvNextImageProcessor(size={"shortest_edge": 32}, crop_pct=0.875),
        ),
        "resnet": (
            lambda: t.ResNetForImageClassification(t.ResNetConfig(**STAGES, embedding_size=8, layer_type="basic")),
            t.ConvNextImageProcessor(size={"shortest_edge": 384}),
        ),
        "bert": (lambda: t.BertModel(t.BertConfig(**SMALL, vocab_size=20)), vit),
        "video": (lambda: t.VideoMAEModel(t.VideoMAEConfig(**vision, num_frames=2)), vit),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Kind → a folder as `save_pretrained` leaves it, made once."""
    root, known = tmp_path_factory.mktemp("hub"), models()

    def made(kind):
        if not (root / kind).exists():
            model, processor = known[kind]
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                network = model()
            for tensor in network.parameters():  # so that no table of positions is left at zero
                tensor.data += 0.02 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2))
            network.save_pretrained(root / kind)
            processor.save_pretrained(root / kind)
        return root / kind

    return made


def output(folder, *, tower=lambda model: model, batch=images, **options):
    """What the class in the folder's own configuration gives, without this package."""
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(folder).architectures[0])
    with torch.no_grad():
        return tower(kind.from_pretrained(folder).eval())(pixel_values=batch, **options)


def by_pillow(kind):
    """The image processor that resizes by Pillow, which transformers 5 gives a name of its own."""
    return getattr(transformers, f"{kind}Pil", getattr(transformers, kind))


def seen(processor, photo):
    return torch.as_tensor(processor(images=photo, return_tensors="pt")["pixel_values"][0])


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "pool", "prefix"),
    [
        ("dinov2", "cls", 1),
        ("registers", "cls", 4),
        ("vit", "cls", 1),
        ("clip", "head", 1),
        ("clip_vision", "head", 1),
        ("siglip", "head", 0),
        ("siglip_vision", "head", 0),
        ("beit", "cls", 1),
        ("deit", "cls", 2),
        ("swin", "avg", 0),
        ("convnext", "avg", 0),
    ],
)
def test_codes_are_those_of_the_model_called_directly(folder, kind, pool, prefix):
    tower = (lambda model: model.vision_model) if kind in ("clip", "siglip") else (lambda model: model)
    theirs = output(folder(kind), tower=tower)
    hidden = theirs.last_hidden_state
    hidden = hidden.flatten(2).transpose(1, 2) if hidden.ndim == 4 else hidden
    expected = {
        "head": theirs.pooler_output,
        "cls": hidden[:, 0],
        "avg": hidden[:, prefix:].mean(1),
        "max": hidden[:, prefix:].amax(1),
        "flatten": theirs.last_hidden_state.flatten(1),
        "none": theirs.last_hidden_state,
    }
    own = rx.load_encoder(f"hf:{folder(kind)}")
    assert (own.name, own.pool, own.dtype) == (f"hf:{kind}", pool, torch.float32)
    assert not own.module.training
    close(own(images), expected[pool])
    for pool in expected if kind == "registers" else ("avg", "head"):
        if pool != own.pool:
            close(rx.load_encoder(f"hf:{folder(kind)}", pool=pool)(images), expected[pool])


def test_of_two_towers_only_one_is_loaded(folder):
    for kind in ("clip", "siglip"):
        module = rx.load_encoder(f"hf:{folder(kind)}").module
        assert not [name for name, _ in module.named_parameters() if "text" in name]


def test_a_classifier_is_left_out(folder):
    encoder = rx.load_encoder(f"hf:{folder('resnet')}")
    theirs = output(folder("resnet"), tower=lambda model: model.resnet)
    close(encoder(images), theirs.pooler_output.flatten(1))
    assert encoder.pool == "avg"


def test_mae_sees_every_patch_in_order(folder):
    """The same weights in a plain ViT, which neither masks nor shuffles."""
    network = transformers.ViTMAEForPreTraining.from_pretrained(folder("mae"))
    config = transformers.ViTConfig(**SMALL, **SEEN)
    plain = transformers.ViTModel(config, add_pooling_layer=False).eval()
    plain.load_state_dict(network.vit.state_dict())
    with torch.no_grad():
        expected = plain(images).last_hidden_state
    encoder = rx.load_encoder(f"hf:{folder('mae')}")
    assert encoder.pool == "cls"
    assert torch.equal(encoder(images), encoder(images))
    close(encoder(images), expected[:, 0])
    close(rx.load_encoder(f"hf:{folder('mae')}", pool="none")(images), expected)


PHOTOS = [data.coffee(), data.coffee().transpose(1, 0, 2).copy(), data.astronaut(), data.chelsea()]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("BitImageProcessor", {"size": {"shortest_edge": 256}}),
        ("CLIPImageProcessor", {}),
        ("SiglipImageProcessor", {}),
        ("ViTImageProcessor", {}),
        ("DeiTImageProcessor", {}),
        ("ConvNextImageProcessor", {"size": {"shortest_edge": 224}}),
        ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}}),
        ("ViTImageProcessor", {"resample": 1, "size": {"height": 96, "width": 80}}),
        ("ViTImageProcessor", {"do_normalize": False}),
        ("ViTImageProcessor", {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3}),
        ("ViTImageProcessor", {"do_rescale": False, "image_mean": [120.0] * 3, "image_std": [60.0, 61.0, 62.0]}),
    ],
)
def test_pixels_are_those_of_the_models_own_processor(tmp_path, folder, kind, options):
    """The same where Pillow resizes for it; torchvision rounds elsewhere, by up to 9 of 255 levels in a few pixels."""
    shutil.copytree(folder("convnext"), tmp_path, dirs_exist_ok=True)
    own = getattr(transformers, kind)(**options)
    own.save_pretrained(tmp_path)
    encoder = rx.load_encoder(f"hf:{tmp_path}")
    std = torch.tensor(encoder.preprocessing.std)[:, None, None]
    for photo in PHOTOS:
        pixels = rx.load_image(photo, encoder).pixels
        torch.testing.assert_close(pixels, seen(by_pillow(kind)(**options), photo), atol=1e-5, rtol=1e-5)
        levels = ((pixels - seen(own, photo)) * std).abs() * 255
        assert (levels.max() < 10, levels.mean() < 0.25) == (True, True)


def test_a_crop_that_cannot_be_centred_is_off_by_a_pixel(tmp_path, folder):
    """A photo 335 wide is cropped to 224 from its 56th column, as by torchvision, and by transformers from its 55th."""
    shutil.copytree(folder("clip"), tmp_path, dirs_exist_ok=True)
    transformers.CLIPImageProcessor().save_pretrained(tmp_path)
    encoder = rx.load_encoder(f"hf:{tmp_path}", weights="random")
    pixels = rx.load_image(data.rocket(), encoder).pixels
    theirs = seen(by_pillow("CLIPImageProcessor")(), data.rocket())
    torch.testing.assert_close(pixels[..., :-1], theirs[..., 1:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dinov2", "vit", "clip", "siglip", "mae", "beit", "swin", "convnext"])
def test_another_size_is_what_the_model_makes_of_it(folder, kind):
    encoder = rx.load_encoder(f"hf:{folder(kind)}", size=48, pool="none")
    resize = {"dinov2": 54, "clip": 54, "beit": (54, 54), "convnext": 54}.get(kind, (48, 48))
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((48, 48), resize)
    large = torch.randn(2, 3, 48, 48, generator=torch.Generator().manual_seed(3))
    tower = (lambda model: model.vision_model) if kind in ("clip", "siglip") else (lambda model: model)
    if kind == "mae":
        order = torch.arange(36.0).expand(2, -1)
        model = transformers.ViTMAEModel.from_pretrained(folder(kind), mask_ratio=0.0).eval()
        with torch.no_grad():
            theirs = model(large, noise=order, interpolate_pos_encoding=True)
    else:
        options = {} if kind in ("dinov2", "convnext") else {"interpolate_pos_encoding": True}
        theirs = output(folder(kind), tower=tower, batch=large, **options)
    close(encoder(large), theirs.last_hidden_state)


def test_gradients_reach_the_image(folder):
    for kind in ("dinov2", "clip", "siglip", "mae", "swin", "convnext"):
        pixels = images.clone().requires_grad_()
        rx.load_encoder(f"hf:{folder(kind)}").module(pixels).square().sum().backward()
        assert (pixels.grad.flatten(1).abs().sum(1) > 0).all(), kind


@pytest.mark.parametrize("kind", ["dinov2", "siglip", "mae"])
def test_they_are_explained(folder, kind):
    encoder = rx.load_encoder(f"hf:{folder(kind)}", device="cpu")
    image = rx.load_image(data.coffee(), encoder)
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=32), repeats=2)
    explanation = method(encoder, image, seed=0)
    assert explanation.importance.shape == (32, 32)
    assert explanation.provenance["encoder"]["weights"] == encoder.weights
    a, b = (
        rx.Relax(masks=600).explain(e, image, seed=0)
        for e in (encoder, rx.load_encoder(f"hf:{folder(kind)}", device="cpu", runtime="torch"))
    )
    assert a.provenance["ran"]["runtime"] == "onnxruntime"
    torch.testing.assert_close(a.importance, b.importance, atol=1e-4, rtol=0)


def test_untrained_it_is_always_the_same_and_the_callers_draws_stay_theirs(folder):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second = (rx.load_encoder(f"hf:{folder('vit')}", weights="random") for _ in range(2))
    trained = rx.load_encoder(f"hf:{folder('vit')}")
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first(images), second(images))
    assert not torch.allclose(first(images), trained(images))
    assert first.weights == "random"


def test_a_folder_is_known_by_its_content(folder, tmp_path):
    found = rx.load_encoder(f"hf:{folder('vit')}").weights
    for file in ("config.json", "model.safetensors"):
        digest = hashlib.sha256((folder("vit") / file).read_bytes()).hexdigest()
        assert f"{file} (sha256 {digest[:16]})" in found
    copy = shutil.copytree(folder("vit"), tmp_path / "copy")
    assert rx.load_encoder(f"hf:{copy}").weights == found
    transformers.ViTModel(transformers.ViTConfig(**SMALL, **SEEN)).save_pretrained(copy)
    assert rx.load_encoder(f"hf:{copy}").weights != found


def test_half_precision_checkpoints_are_run_in_full(folder, tmp_path):
    copy = shutil.copytree(folder("vit"), tmp_path / "half")
    transformers.ViTModel.from_pretrained(copy).half().save_pretrained(copy)
    assert rx.load_encoder(f"hf:{copy}").dtype == torch.float32


def test_a_checkpoint_of_older_days(folder, tmp_path):
    copy = shutil.copytree(folder("vit"), tmp_path / "old")
    torch.save(safetensors.torch.load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    old, new = rx.load_encoder(f"hf:{copy}"), rx.load_encoder(f"hf:{folder('vit')}")
    assert torch.equal(old(images), new(images))
    assert "pytorch_model.bin (sha256" in old.weights


def test_weights_of_the_pooling_may_be_lacking_unless_they_are_wanted(folder, tmp_path, capfd):
    copy = shutil.copytree(folder("vit"), tmp_path / "copy")
    bare = transformers.ViTModel(transformers.ViTConfig(**SMALL, **SEEN), add_pooling_layer=False).eval()
    bare.save_pretrained(copy)
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    before = [logger.level for logger in loggers], transformers.utils.logging.is_progress_bar_enabled()
    capfd.readouterr()
    encoder = rx.load_encoder(f"hf:{copy}")
    assert capfd.readouterr() == ("", "")
    assert ([logger.level for logger in loggers], transformers.utils.logging.is_progress_bar_enabled()) == before
    with torch.no_grad():
        close(encoder(images), bare(images).last_hidden_state[:, 0])
    with pytest.raises(rx.RepeatError, match="no weights for it"):
        rx.load_encoder(f"hf:{copy}", pool="head")


class Evil:
    def __reduce__(self):
        return (print, ("code that must not run",))


def spoilt(folder, path, kind):
    """A copy of a good folder with one thing wrong."""
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
def test_what_cannot_be_used_is_refused_in_one_line(folder, tmp_path, capfd, kind, options, message):
    path = spoilt(folder, tmp_path, kind)
    capfd.readouterr()
    with pytest.raises(rx.RepeatError, match=message) as caught:
        rx.load_encoder(f"hf:{path}", **options)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_class_token_where_there_is_none(folder):
    for kind in ("siglip", "swin", "convnext"):
        with pytest.raises(rx.RepeatError, match="class token"):
            rx.load_encoder(f"hf:{folder(kind)}", pool="cls")
    with pytest.raises(rx.RepeatError, match="no pooling of its own"):
        rx.load_encoder(f"hf:{folder('mae')}", pool="head")


def test_without_the_hub_a_name_is_refused_at_once(monkeypatch):
    def unreachable(*args, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    with pytest.raises(rx.RepeatError, match=r"the hub cannot be asked \(no route\)"):
        rx.load_encoder("hf:nobody/has-this-model")


def test_without_transformers_it_says_what_to_install(monkeypatch, folder):
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
