"""An encoder of a setting is written as NAME or NAME=WEIGHTS."""

from dataclasses import replace

import pytest

from repeat_xai.cli.evaluate import network_of
from repeat_xai.experiments.settings import Network


@pytest.mark.parametrize(
    ("text", "name", "weights"),
    [
        ("efficientnet_lite0", "efficientnet_lite0", None),
        ("torchvision:alexnet=random", "torchvision:alexnet", "random"),
        (" timm:resnet50 = a/b=c.safetensors ", "timm:resnet50", "a/b=c.safetensors"),
        ("onnx:runs/lr=3.onnx", "onnx:runs/lr=3.onnx", None),
        ("hf:facebook/dinov2-small", "hf:facebook/dinov2-small", None),
    ],
)
def test_the_text_of_an_encoder_is_parsed_and_written_again(text, name, weights):
    network = Network.of(text, size=32)
    assert (network.name, network.weights, network.size) == (name, weights, 32)
    assert Network.of(str(network), size=32) == network
    assert network_of(text, "paper", 32) == replace(network, fit=224)
