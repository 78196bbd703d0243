"""Vision models of transformers, tiny and untrained, loaded by name from folders that `save_pretrained` wrote."""

import hashlib
import logging
import shutil

import pytest
import safetensors.torch
import torch
import transformers
from skimage import data
from tiny_models import SEEN, SMALL

import repeat_xai as rx

images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def output(folder, *, tower=lambda model: model, batch=images, **options):
    """Return the output of the class that the folder's configuration names, without this package."""
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(folder).architectures[0])
    with torch.no_grad():
        return tower(kind.from_pretrained(folder).eval())(pixel_values=batch, **options)


def by_pillow(kind):
    """Return the image processor that resizes by Pillow, which transformers 5 calls by another name."""
    return getattr(transformers, f"{kind}Pil", getattr(transformers, kind))


def pixels_of(processor, photo):
    return torch.as_tensor(processor(images=photo, return_tensors="pt")["pixel_values"][0])


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
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


def test_only_the_vision_tower_is_loaded(folder):
    for kind in ("clip", "siglip"):
        module = rx.load_encoder(f"hf:{folder(kind)}").module
        assert not [name for name, _ in module.named_parameters() if "text" in name]


def test_a_classifier_is_not_part_of_the_encoder(folder):
    encoder = rx.load_encoder(f"hf:{folder('resnet')}")
    theirs = output(folder("resnet"), tower=lambda model: model.resnet)
    close(encoder(images), theirs.pooler_output.flatten(1))
    assert encoder.pool == "avg"


def test_mae_is_shown_every_patch_in_order(folder):
    """Its codes are those of a plain ViT with the same weights, which neither masks nor shuffles."""
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


@pytest.mark.slow
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
    """They are the same where it resizes by Pillow; torchvision differs by up to 9 of 255 levels in a few pixels."""
    shutil.copytree(folder("convnext"), tmp_path, dirs_exist_ok=True)
    own = getattr(transformers, kind)(**options)
    own.save_pretrained(tmp_path)
    encoder = rx.load_encoder(f"hf:{tmp_path}")
    std = torch.tensor(encoder.preprocessing.std)[:, None, None]
    for photo in PHOTOS:
        pixels = rx.load_image(photo, encoder).pixels
        torch.testing.assert_close(pixels, pixels_of(by_pillow(kind)(**options), photo), atol=1e-5, rtol=1e-5)
        levels = ((pixels - pixels_of(own, photo)) * std).abs() * 255
        assert (levels.max() < 10, levels.mean() < 0.25) == (True, True)


def test_a_crop_that_cannot_be_centred_starts_a_pixel_later(tmp_path, folder):
    """A photo 335 wide is cropped to 224 from column 56, as torchvision does; transformers crops from column 55."""
    shutil.copytree(folder("clip"), tmp_path, dirs_exist_ok=True)
    transformers.CLIPImageProcessor().save_pretrained(tmp_path)
    encoder = rx.load_encoder(f"hf:{tmp_path}", weights="random")
    pixels = rx.load_image(data.rocket(), encoder).pixels
    theirs = pixels_of(by_pillow("CLIPImageProcessor")(), data.rocket())
    torch.testing.assert_close(pixels[..., :-1], theirs[..., 1:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["dinov2", "vit", "clip", "siglip", "mae", "beit", "swin", "convnext"])
def test_codes_at_another_size_are_those_of_the_model(folder, kind):
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dinov2", "siglip", "mae"])
def test_models_are_explained_and_exported(folder, kind):
    encoder = rx.load_encoder(f"hf:{folder(kind)}", device="cpu")
    image = rx.load_image(data.coffee(), encoder)
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=32), repeats=2)
    explanation = method(encoder, image, seed=0)
    assert explanation.importance.shape == (32, 32)
    assert explanation.provenance["encoder"]["weights"] == encoder.weights
    a, b = (
        rx.Relax(masks=600)(e, image, seed=0)
        for e in (encoder, rx.load_encoder(f"hf:{folder(kind)}", device="cpu", runtime="torch"))
    )
    assert a.provenance["ran"]["runtime"] == "onnxruntime"
    torch.testing.assert_close(a.importance, b.importance, atol=1e-4, rtol=0)


def test_an_untrained_model_is_always_the_same_and_leaves_the_generator_alone(folder):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second = (rx.load_encoder(f"hf:{folder('vit')}", weights="random") for _ in range(2))
    trained = rx.load_encoder(f"hf:{folder('vit')}")
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first(images), second(images))
    assert not torch.allclose(first(images), trained(images))
    assert first.weights == "random"


def test_weights_name_the_content_of_a_folder(folder, tmp_path):
    weights = rx.load_encoder(f"hf:{folder('vit')}").weights
    for file in ("config.json", "model.safetensors"):
        digest = hashlib.sha256((folder("vit") / file).read_bytes()).hexdigest()
        assert f"{file} (sha256 {digest[:16]})" in weights
    copy = shutil.copytree(folder("vit"), tmp_path / "copy")
    assert rx.load_encoder(f"hf:{copy}").weights == weights
    transformers.ViTModel(transformers.ViTConfig(**SMALL, **SEEN)).save_pretrained(copy)
    assert rx.load_encoder(f"hf:{copy}").weights != weights


def test_half_precision_checkpoints_are_run_in_full(folder, tmp_path):
    copy = shutil.copytree(folder("vit"), tmp_path / "half")
    transformers.ViTModel.from_pretrained(copy).half().save_pretrained(copy)
    assert rx.load_encoder(f"hf:{copy}").dtype == torch.float32


def test_a_checkpoint_without_safetensors_is_loaded(folder, tmp_path):
    copy = shutil.copytree(folder("vit"), tmp_path / "old")
    torch.save(safetensors.torch.load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    old, new = rx.load_encoder(f"hf:{copy}"), rx.load_encoder(f"hf:{folder('vit')}")
    assert torch.equal(old(images), new(images))
    assert "pytorch_model.bin (sha256" in old.weights


def test_weights_of_the_pooling_may_be_missing_unless_it_is_used(folder, tmp_path, capfd):
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


def test_a_preprocessing_replaces_that_of_the_image_processor(folder, tmp_path):
    """A folder without an image processor needs one."""
    preprocessing = rx.Preprocessing(size=(48, 40), resize=(48, 40), mean=(0.5,) * 3, std=(0.25,) * 3)
    copy = shutil.copytree(folder("vit"), tmp_path / "copy")
    (copy / "preprocessor_config.json").unlink()
    with pytest.raises(rx.RepeatError, match="give a preprocessing"):
        rx.load_encoder(f"hf:{copy}")
    encoder = rx.load_encoder(f"hf:{copy}", preprocessing=preprocessing)
    assert (encoder.preprocessing, encoder.pool) == (preprocessing, "cls")
    assert encoder(torch.randn(2, 3, 48, 40)).shape == (2, 32)
    grey = rx.Preprocessing(size=(32, 32), resize=32, mean=(0.5,), std=(0.25,))
    with pytest.raises(rx.errors.ConfigurationError, match="takes no images"):
        rx.load_encoder(f"hf:{copy}", preprocessing=grey)
