"""Models of open_clip: codes of images and of texts, pixels and weights are those of the library itself."""

import logging
import sys

import huggingface_hub
import open_clip
import PIL.Image
import pytest
import safetensors.torch
import torch
from skimage import data
from tiny_two_towers import OPEN_CLIP, TEXTS, register

import repeat_xai as rx
from repeat_xai.encoders.load_encoder import names
from repeat_xai.types.text import expect_text_encoder


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory):
    """Make open_clip know tiny models."""
    register(tmp_path_factory.mktemp("configs"))


def library(name):
    """Return a model of open_clip's with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return open_clip.create_model(name).eval()


def batch(side, seed=0):
    return torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(seed))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Return a function that gives the file of weights of a model, as open_clip's training saves them."""
    root = tmp_path_factory.mktemp("checkpoints")

    def file_of(name, *, wrapped=False):
        state = library(name).state_dict()
        if not wrapped:
            safetensors.torch.save_file(state, root / f"{name}.safetensors")
            return root / f"{name}.safetensors"
        torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in state.items()}}, root / f"{name}.pt")
        return root / f"{name}.pt"

    return file_of


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN_CLIP)
def test_codes_of_images_and_of_texts_are_the_models_own(checkpoint, name):
    encoder = rx.load_encoder(f"open_clip:{name}", weights=checkpoint(name), device="cpu")
    model, images = library(name), batch(encoder.preprocessing.size[0])
    with torch.no_grad():
        of_images, of_texts = model.encode_image(images), model.encode_text(open_clip.get_tokenizer(name)(TEXTS))
    close(encoder(images), of_images)
    close(encoder.encode_text(TEXTS), of_texts)
    assert expect_text_encoder(encoder) is encoder
    assert (encoder.name, encoder.pool) == (f"open_clip:{name}", "projection")
    assert f"{name}.safetensors (sha256" in encoder.weights
    assert all("visual" in part for part, _ in encoder.module.named_parameters())
    assert not any("visual" in part for part, _ in encoder.encode_text.module.named_parameters())


@pytest.mark.slow
def test_weights_saved_by_training_or_for_a_model_of_the_other_form_are_read(checkpoint):
    images = batch(32)
    plain = rx.load_encoder("open_clip:tiny-clip", weights=checkpoint("tiny-clip"), device="cpu")
    wrapped = rx.load_encoder("open_clip:tiny-clip", weights=checkpoint("tiny-clip", wrapped=True), device="cpu")
    custom = rx.load_encoder("open_clip:tiny-custom-clip", weights=checkpoint("tiny-clip"), device="cpu")
    for encoder in (wrapped, custom):
        close(encoder(images), plain(images))
        close(encoder.encode_text(TEXTS), plain.encode_text(TEXTS))


def test_codes_at_another_size_are_those_of_the_model(checkpoint):
    encoder = rx.load_encoder("open_clip:tiny-clip", weights=checkpoint("tiny-clip"), size=48, device="cpu")
    theirs = open_clip.create_model("tiny-clip", pretrained=str(checkpoint("tiny-clip")), force_image_size=48).eval()
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((48, 48), 48)
    with torch.no_grad():
        close(encoder(batch(48)), theirs.encode_image(batch(48)))


@pytest.mark.parametrize("options", [{}, {"resize_mode": "squash", "interpolation": "bilinear", "mean": (0.5,) * 3}])
def test_pixels_are_those_of_open_clip(monkeypatch, options):
    published = {"tiny-clip": {"a": {"url": "", **options}, "b": {"url": "", **options}}}
    monkeypatch.setattr(open_clip.pretrained, "_PRETRAINED", published)
    encoder = rx.load_encoder("open_clip:tiny-clip", weights="random")
    config = open_clip.transform.PreprocessCfg(size=32, **options)
    transform = open_clip.transform.image_transform_v2(config, is_train=False)
    for photo in (data.coffee(), data.chelsea(), data.astronaut()):
        pixels = rx.load_image(photo, encoder).pixels
        torch.testing.assert_close(pixels, transform(PIL.Image.fromarray(photo)), atol=1e-5, rtol=0)


def test_a_resizing_that_is_not_known_needs_a_preprocessing(monkeypatch):
    published = {"tiny-clip": {"a": {"url": "", "resize_mode": "longest"}}}
    monkeypatch.setattr(open_clip.pretrained, "_PRETRAINED", published)
    with pytest.raises(rx.RepeatError, match="give a preprocessing"):
        rx.load_encoder("open_clip:tiny-clip", weights="random")
    preprocessing = rx.Preprocessing(size=(32, 32), resize=40, mean=(0.5,) * 3, std=(0.5,) * 3)
    encoder = rx.load_encoder("open_clip:tiny-clip", weights="random", preprocessing=preprocessing)
    assert encoder.preprocessing == preprocessing


def test_published_weights_bring_their_activation_and_their_name(monkeypatch, checkpoint):
    """Weights of OpenAI were trained with another activation, which open_clip only warns of."""
    tag = {"file": str(checkpoint("tiny-clip")), "quick_gelu": True}
    monkeypatch.setattr(open_clip.pretrained, "_PRETRAINED", {"tiny-clip": {"openai": tag}})
    encoder = rx.load_encoder("open_clip:tiny-clip", device="cpu")
    quick = open_clip.create_model("tiny-clip", pretrained=str(tag["file"]), force_quick_gelu=True).eval()
    with torch.no_grad():
        close(encoder(batch(32)), quick.encode_image(batch(32)))
        assert not torch.allclose(encoder(batch(32)), library("tiny-clip").encode_image(batch(32)), atol=1e-4)
    assert encoder.weights == "open_clip openai"
    assert rx.load_encoder("open_clip:tiny-clip", weights="openai", device="cpu").weights == "open_clip openai"


def test_an_untrained_model_is_always_the_same_and_leaves_everything_alone(capfd):
    root = logging.getLogger()
    before, state = (root.level, list(root.handlers)), torch.get_rng_state()
    first, second = (rx.load_encoder("open_clip:tiny-clip", weights="random") for _ in range(2))
    assert torch.equal(first(batch(32)), second(batch(32)))
    assert torch.equal(torch.get_rng_state(), state)
    assert (root.level, list(root.handlers)) == before
    assert (first.weights, capfd.readouterr()) == ("random", ("", ""))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ViT-B-32", {}, "needs weights; give a file of weights or one of: openai"),
        ("tiny-clip", {}, "needs weights; give a file of weights, since none"),
        ("ViT-B-32", {"weights": "openei"}, "has no weights 'openei'"),
        ("ViT-B-3", {}, "did you mean open_clip:ViT-B-32"),
        ("tiny-clip", {"weights": "random", "pool": "avg"}, "unknown pool"),
        ("", {}, "unknown encoder"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(name, options, message):
    with pytest.raises(rx.errors.ConfigurationError, match=message) as caught:
        rx.load_encoder(f"open_clip:{name}", **options)
    assert "\n" not in str(caught.value)


def test_weights_of_another_model_are_refused(checkpoint, tmp_path):
    with pytest.raises(rx.RepeatError, match="do not fit the encoder"):
        rx.load_encoder("open_clip:tiny-clip", weights=checkpoint("tiny-resnet-clip"))
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(rx.RepeatError, match="bad"):
        rx.load_encoder("open_clip:tiny-clip", weights=tmp_path / "bad.safetensors")


def test_without_the_hub_weights_are_refused_and_a_tokeniser_when_it_is_needed(monkeypatch):
    def unreachable(*args, **options):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "model_info", unreachable)
    with pytest.raises(rx.RepeatError, match=r"cannot be loaded \(no route\); give a local file"):
        rx.load_encoder("open_clip:ViT-B-32", weights="laion2b_s34b_b79k")
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS["tiny-clip"]["text_cfg"], "hf_tokenizer_name", "some/one")
    encoder = rx.load_encoder("open_clip:tiny-clip", weights="random")
    assert encoder(batch(32)).shape == (2, 16)
    with pytest.raises(rx.RepeatError, match=r"tokeniser some/one cannot be loaded.*no route"):
        encoder.encode_text(["a red car"])


def test_without_open_clip_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(rx.RepeatError, match=r"pip install 'repeat-xai\[clip\]'"):
        rx.load_encoder("open_clip:ViT-B-32")
    assert not [name for name in names() if name.startswith("open_clip:")]
    with pytest.raises(rx.RepeatError, match="open_clip:NAME"):
        rx.load_encoder("nothing:known")


def test_names_are_listed():
    assert "open_clip:ViT-B-32" in names()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*may change votes")  # codes of an untrained network hardly differ
@pytest.mark.parametrize("name", ["tiny-clip", "tiny-resnet-clip"])
def test_models_are_explained_exported_and_run_in_half_precision(checkpoint, name):
    def loaded(**options):
        return rx.load_encoder(f"open_clip:{name}", weights=checkpoint(name), device="cpu", **options)

    image = rx.load_image(data.coffee(), loaded())
    explanation = rx.Repeat(budget=256)(loaded(), image, seed=0)
    assert explanation.importance.shape == image.pixels.shape[-2:]
    by_torch = rx.Relax(masks=600)(loaded(runtime="torch"), image, seed=0)
    by_onnx = rx.Relax(masks=600)(loaded(), image, seed=0)
    assert by_onnx.provenance["ran"]["runtime"] == "onnxruntime"
    torch.testing.assert_close(by_onnx.importance, by_torch.importance, atol=1e-4, rtol=0)
    half = rx.Relax(masks=600)(loaded(precision="bfloat16"), image, seed=0)
    assert half.provenance["ran"]["precision"] == "bfloat16"
    if name == "tiny-clip":
        assert torch.corrcoef(torch.stack((half.importance.flatten(), by_torch.importance.flatten())))[0, 1] > 0.9
