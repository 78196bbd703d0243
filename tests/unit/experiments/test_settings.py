"""Tests of encoders written as text."""

from dataclasses import replace

import pytest

from repeat_xai.experiments.settings import EncoderSpec


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
def test_an_encoder_is_a_name_or_a_name_with_weights(text, name, weights):
    spec = EncoderSpec.of(text, size=32)
    assert (spec.name, spec.weights, spec.size) == (name, weights, 32)
    assert EncoderSpec.of(str(spec), size=32) == spec
    assert EncoderSpec.of(text, size=32, protocol="paper") == replace(spec, fit=224)
