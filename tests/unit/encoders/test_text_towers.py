"""Models of transformers with two towers: codes of images and of texts are their own projections."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import transformers
from skimage import data
from tiny_two_towers import LENGTH, PADDING, TEXTS, saved, two_towers

import repeat_xai as rx
from repeat_xai.encoders.huggingface_towers import TWO_TOWERS
from repeat_xai.types.text import TextEncoder, expect_text_encoder

images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a function that gives the folder of a type of model, which is written when it is first needed."""
    root = tmp_path_factory.mktemp("towers")

    def folder_of(kind):
        return root / kind if (root / kind).exists() else saved(kind, root / kind)

    return folder_of


def library(folder, kind):
    """Return transformers' own codes of the images and of the texts, which are padded in one batch."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(TEXTS, padding=PADDING.get(kind, True), truncation=True, max_length=LENGTH, return_tensors="pt")
    with torch.no_grad():
        return [
            getattr(features, "pooler_output", features)
            for features in (model.get_image_features(pixel_values=images), model.get_text_features(**tokens))
        ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", TWO_TOWERS)
def test_codes_of_images_and_of_texts_are_the_models_own(folder, kind):
    of_images, of_texts = library(folder(kind), kind)
    encoder = rx.load_encoder(f"hf:{folder(kind)}", pool="projection", device="cpu")
    assert encoder.pool == "projection"
    close(encoder(images), of_images)
    close(encoder.encode_text(TEXTS), of_texts)
    assert encoder.encode_text(TEXTS[:1]).shape[1] == encoder(images).shape[1]
    assert not torch.allclose(of_texts[0], of_texts[1], atol=1e-3)


def test_every_type_of_model_is_tested():
    assert set(two_towers()) == set(TWO_TOWERS)


def test_a_code_depends_neither_on_the_other_texts_nor_on_what_is_cut_off(folder):
    for kind in ("clip", "siglip"):
        encode = rx.load_encoder(f"hf:{folder(kind)}", pool="projection", device="cpu").encode_text
        for number, text in enumerate(TEXTS):
            assert torch.equal(encode([text])[0], encode(TEXTS)[number])
        assert torch.equal(encode([TEXTS[2]]), encode([f"{TEXTS[2]} indeed"]))


def test_texts_of_siglip_are_padded_to_their_full_length(folder):
    """The code of a short text is another one without the padding, with which the model was trained."""
    encoder = rx.load_encoder(f"hf:{folder('siglip')}", pool="projection", device="cpu")
    model = transformers.AutoModel.from_pretrained(folder("siglip")).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder("siglip"))(["a"], return_tensors="pt")
    assert tokens["input_ids"].shape[1] < LENGTH
    with torch.no_grad():
        unpadded = model.get_text_features(**tokens).pooler_output
    assert (encoder.encode_text(["a"]) - unpadded).abs().max() > 1e-3


def test_each_tower_holds_no_weights_of_the_other(folder):
    for kind in ("clip", "siglip"):
        encoder = rx.load_encoder(f"hf:{folder(kind)}", pool="projection")
        names = [name for name, _ in encoder.module.named_parameters()]
        assert names
        assert not [name for name in names if "text" in name or "logit" in name]
        assert not [name for name, _ in encoder.encode_text.module.named_parameters() if "vis" in name]


def test_other_pools_have_no_text_tower(folder):
    for kind in ("clip", "siglip"):
        encoder = rx.load_encoder(f"hf:{folder(kind)}")
        assert (encoder.pool, encoder.encode_text, isinstance(encoder, TextEncoder)) == ("head", None, False)
    assert isinstance(rx.load_encoder(f"hf:{folder('clip')}", pool="projection"), TextEncoder)


def test_codes_at_another_size_are_those_of_the_model(folder):
    large = torch.randn(2, 3, 48, 48, generator=torch.Generator().manual_seed(3))
    for kind in ("clip", "siglip"):
        encoder = rx.load_encoder(f"hf:{folder(kind)}", pool="projection", size=48, device="cpu")
        model = transformers.AutoModel.from_pretrained(folder(kind)).eval()
        with torch.no_grad():
            theirs = model.get_image_features(pixel_values=large, interpolate_pos_encoding=True).pooler_output
        close(encoder(large), theirs)


def test_an_object_gives_the_codes_of_its_folder_and_is_left_as_it_was(folder):
    """Its tokeniser is the one that is saved where the object was loaded from."""
    for kind in ("clip", "siglip", "altclip"):
        model = transformers.AutoModel.from_pretrained(folder(kind)).train()
        parts, state = (
            dict(model.named_modules()),
            {name: tensor.clone() for name, tensor in model.state_dict().items()},
        )
        by_object = rx.load_encoder(model, pool="projection")
        by_name = rx.load_encoder(f"hf:{folder(kind)}", pool="projection", device="cpu")
        assert by_object.preprocessing == by_name.preprocessing
        close(by_object(images), by_name(images))
        close(by_object.encode_text(TEXTS), by_name.encode_text(TEXTS))
        assert dict(model.named_modules()) == parts
        assert all(part.training for part in parts.values())
        assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_an_object_that_was_loaded_from_nowhere_takes_images_alone():
    model = two_towers()["clip"][0]().eval()
    encoder = rx.load_encoder(model, pool="projection")
    assert encoder.preprocessing.size == (32, 32)
    with torch.no_grad():
        close(encoder(images), model.get_image_features(pixel_values=images).pooler_output)
    with pytest.raises(rx.RepeatError, match=r"CLIPModel: has no tokeniser.*not loaded from anywhere"):
        encoder.encode_text(["a red car"])


@pytest.mark.parametrize("kind", ["clip", "siglip", "chinese_clip", "altclip"])
def test_a_tokeniser_that_is_not_there_is_one_line(folder, tmp_path, kind, capfd):
    """Without its files transformers makes some tokenisers that know no word: they are not used."""
    copy = tmp_path / "copy"
    shutil.copytree(folder(kind), copy, ignore=shutil.ignore_patterns("token*", "spiece*", "vocab*", "merges*"))
    capfd.readouterr()
    encoder = rx.load_encoder(f"hf:{copy}", pool="projection")
    assert encoder(images).shape[0] == 2
    with pytest.raises(rx.RepeatError, match="has no tokeniser") as caught:
        encoder.encode_text(["a red car"])
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("texts", [[""], ["a red car", "  "], [], "a red car"])
def test_what_is_no_text_is_refused(folder, texts):
    encoder = rx.load_encoder(f"hf:{folder('clip')}", pool="projection")
    with pytest.raises(rx.errors.ConfigurationError, match="text"):
        encoder.encode_text(texts)


def test_encoders_without_a_text_tower_are_refused(folder):
    towers = rx.load_encoder(f"hf:{folder('clip')}", pool="projection")
    assert expect_text_encoder(towers) is towers
    for encoder in (rx.load_encoder("efficientnet_lite0"), replace(towers, encode_text=None)):
        with pytest.raises(rx.errors.ConfigurationError, match="has no text tower") as caught:
            expect_text_encoder(encoder)
        assert str(caught.value).startswith(encoder.name)


def test_models_that_cannot_be_pooled_so_are_refused(folder, tmp_path):
    vit = transformers.ViTModel(transformers.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2))
    vit.save_pretrained(tmp_path)
    for source in (vit, f"hf:{tmp_path}"):
        with pytest.raises(rx.errors.ConfigurationError, match="does not project images and texts"):
            rx.load_encoder(source, pool="projection")
    altclip = transformers.AutoModel.from_pretrained(folder("altclip"))
    for source in (altclip, f"hf:{folder('altclip')}"):
        with pytest.raises(rx.errors.ConfigurationError, match="choose pool projection"):
            rx.load_encoder(source)
    with pytest.raises(rx.RepeatError, match="takes no images of 4×4"):
        rx.load_encoder(f"hf:{folder('clip')}", pool="projection", size=4)


CACHED = """
import repeat_xai as rx
encoder = rx.load_encoder("hf:someone/tiny", pool="projection")
print(encoder.encode_text(["a red car"]).shape)
"""


@pytest.mark.slow
def test_a_tokeniser_in_the_cache_is_used_without_the_hub(folder, tmp_path):
    commit, home = "0123456789abcdef0123456789abcdef01234567", tmp_path / "hub" / "models--someone--tiny"
    shutil.copytree(folder("clip"), home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    done = subprocess.run(
        [sys.executable, "-c", CACHED],
        env=os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("torch.Size([1, 16])\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_projections_are_explained_exported_and_run_in_half_precision(folder, kind):
    def loaded(**options):
        return rx.load_encoder(f"hf:{folder(kind)}", pool="projection", device="cpu", **options)

    image = rx.load_image(data.coffee(), loaded())
    explanation = rx.Repeat(budget=256)(loaded(), image, seed=0)
    assert explanation.importance.shape == (32, 32)
    assert explanation.provenance["encoder"]["pool"] == "projection"
    by_torch = rx.Relax(masks=600)(loaded(runtime="torch"), image, seed=0)
    by_onnx = rx.Relax(masks=600)(loaded(), image, seed=0)
    assert by_onnx.provenance["ran"]["runtime"] == "onnxruntime"
    torch.testing.assert_close(by_onnx.importance, by_torch.importance, atol=1e-4, rtol=0)
    half = rx.Relax(masks=600)(loaded(precision="bfloat16"), image, seed=0)
    assert half.provenance["ran"]["precision"] == "bfloat16"
    assert torch.corrcoef(torch.stack((half.importance.flatten(), by_torch.importance.flatten())))[0, 1] > 0.9


@pytest.mark.slow
def test_projections_are_run_compiled(folder):
    loaded = [
        rx.load_encoder(f"hf:{folder('clip')}", pool="projection", device="cpu", runtime=runtime)
        for runtime in ("compiled", "torch")
    ]
    image = rx.load_image(data.coffee(), loaded[0])
    compiled, eager = (rx.Relax(masks=64)(encoder, image, seed=0) for encoder in loaded)
    assert compiled.provenance["ran"]["runtime"] == "compiled"
    torch.testing.assert_close(compiled.importance, eager.importance, atol=1e-4, rtol=0)
