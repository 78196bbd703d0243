"""Real weights are loaded strictly, and encoders give the codes of their networks."""

import pytest
import safetensors.torch
import timm
import torch
import torchvision

import repeat_xai as rx

pytestmark = pytest.mark.real


@pytest.fixture
def batch():
    return torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))


def test_the_code_of_alexnet_is_its_pooled_features_flattened(shared, batch):
    path = shared / "weights/alexnet_features.safetensors"
    network = torchvision.models.alexnet().eval()
    network.load_state_dict(safetensors.torch.load_file(path), strict=False)
    encoder = rx.load_encoder("torchvision:alexnet", weights=path)
    with torch.no_grad():
        expected = network.avgpool(network.features(batch)).flatten(1)
    torch.testing.assert_close(encoder(batch), expected, atol=1e-4, rtol=1e-4)
    assert (encoder.pool, encoder(batch).shape) == ("flatten", (2, 9216))


def test_the_code_of_squeezenet_is_the_average_of_its_features(shared, batch):
    path = shared / "weights/squeezenet1_1.safetensors"
    network = torchvision.models.squeezenet1_1().eval()
    network.load_state_dict(safetensors.torch.load_file(path))
    encoder = rx.load_encoder("torchvision:squeezenet1_1", weights=path)
    with torch.no_grad():
        expected = network.features(batch).mean((2, 3))
    torch.testing.assert_close(encoder(batch), expected, atol=1e-4, rtol=1e-4)


def test_the_code_of_a_vit_is_its_class_token_also_at_another_input_size(shared, batch):
    path = shared / "weights/vit_small_patch14_dinov2.fp16.safetensors"
    encoder = rx.load_encoder("timm:vit_small_patch14_dinov2", weights=path, size=224)
    network = timm.create_model("vit_small_patch14_dinov2", img_size=224, num_classes=0).eval()
    weights = {k: v.float() for k, v in safetensors.torch.load_file(path).items()}
    network.load_state_dict(timm.models.vision_transformer.checkpoint_filter_fn(weights, network))
    with torch.no_grad():
        expected = network(batch)
    torch.testing.assert_close(encoder(batch), expected, atol=1e-3, rtol=1e-3)
    assert (encoder.pool, encoder.preprocessing.size) == ("cls", (224, 224))


def test_weights_of_another_network_are_refused(shared):
    with pytest.raises(rx.RepeatError, match="do not fit"):
        rx.load_encoder("torchvision:resnet18", weights=shared / "weights/squeezenet1_1.safetensors")
