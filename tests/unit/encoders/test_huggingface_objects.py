"""Models of transformers that are given as objects are pooled and preprocessed as `hf:` does it by name."""

import pytest
import torch
import transformers
from skimage import data
from tiny_models import SEEN, SMALL

import repeat_xai as rx

images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def opened(path):
    """Return the model of a folder, of the class that its own configuration names."""
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(path).architectures[0])
    return kind.from_pretrained(path)


KINDS = ("dinov2", "registers", "vit", "clip", "clip_vision", "siglip", "siglip_vision", "mae", "beit", "swin")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "convnext", "resnet"])
def test_an_object_gives_the_codes_of_its_folder(folder, kind):
    """Up to rounding: the network of a folder is loaded in the memory format that suits convolutions best."""
    by_name = rx.load_encoder(f"hf:{folder(kind)}", device="cpu")
    model = opened(folder(kind))
    by_object = rx.load_encoder(model)
    assert (by_object.pool, by_object.preprocessing) == (by_name.pool, by_name.preprocessing)
    assert (by_object.name, by_object.weights) == (type(model).__name__, "as given")
    batch = torch.randn(2, 3, *by_name.preprocessing.size, generator=torch.Generator().manual_seed(0))
    close(by_object(batch), by_name(batch))
    for pool in ("avg", "max", "flatten"):
        of_folder = rx.load_encoder(f"hf:{folder(kind)}", pool=pool, device="cpu")
        close(rx.load_encoder(model, pool=pool)(batch), of_folder(batch))


def test_an_object_is_used_where_it_lies_and_left_as_it_was(folder):
    model = opened(folder("mae")).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    encoder = rx.load_encoder(model)
    first = encoder(images)
    assert model.training
    assert model.config.mask_ratio == transformers.ViTMAEConfig().mask_ratio
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())
    with torch.no_grad():
        model.vit.layernorm.weight.mul_(2)
    assert not torch.equal(encoder(images), first)


def test_an_object_of_unknown_origin_is_given_imagenets_preprocessing_at_its_own_size():
    config = transformers.ViTConfig(**SMALL, **SEEN)
    encoder = rx.load_encoder(transformers.ViTModel(config).eval())
    assert (encoder.preprocessing.size, encoder.preprocessing.resize) == ((32, 32), 37)
    assert encoder.preprocessing.mean == (0.485, 0.456, 0.406)
    oblong = transformers.ViTModel(transformers.ViTConfig(**SMALL | SEEN | {"image_size": (32, 48)})).eval()
    assert rx.load_encoder(oblong).preprocessing.size == (32, 48)
    stages = transformers.ConvNextConfig(hidden_sizes=[8, 16, 32, 64], depths=[1, 1, 1, 1])
    assert rx.load_encoder(transformers.ConvNextModel(stages)).preprocessing.size == (224, 224)


def test_the_preprocessing_size_pool_and_name_that_are_given_are_taken(folder):
    preprocessing = rx.Preprocessing(size=(48, 48), resize=50, mean=(0.5,) * 3, std=(0.25,) * 3)
    encoder = rx.load_encoder(opened(folder("vit")), preprocessing=preprocessing, pool="head", name="mine")
    assert (encoder.preprocessing, encoder.pool, encoder.name) == (preprocessing, "head", "mine")
    assert rx.load_encoder(opened(folder("vit")), size=48).preprocessing.size == (48, 48)
    explanation = rx.Relax(masks=8)(encoder, rx.load_image(data.coffee(), encoder), seed=0)
    assert explanation.importance.shape == (48, 48)


def test_an_object_whose_own_processor_cannot_be_followed_needs_a_preprocessing(folder, tmp_path):
    opened(folder("vit")).save_pretrained(tmp_path)
    transformers.LevitImageProcessor(size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}).save_pretrained(
        tmp_path
    )
    with pytest.raises(rx.RepeatError, match=r"Levit.*preprocessing"):
        rx.load_encoder(opened(tmp_path))
    preprocessing = rx.Preprocessing(size=(32, 32), resize=32, mean=(0.5,) * 3, std=(0.25,) * 3)
    assert rx.load_encoder(opened(tmp_path), preprocessing=preprocessing).pool == "cls"


@pytest.mark.parametrize("kind", ["bert", "video"])
def test_an_object_that_takes_no_images_is_refused(folder, kind, capfd):
    model = opened(folder(kind))
    capfd.readouterr()
    with pytest.raises(rx.RepeatError, match=r"BertModel.*no vision model|VideoMAEModel.*takes no images") as caught:
        rx.load_encoder(model)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
