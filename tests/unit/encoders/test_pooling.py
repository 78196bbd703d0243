"""Poolings of feature maps and of tokens, checked by hand."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.pooling import PooledNetwork


@pytest.mark.slow
def test_pools_of_a_feature_map_and_of_tokens():
    """Two channels of four places, of which the first holds 1 to 4; a class token 9 before three tokens."""
    maps = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 8.0]]]])
    tokens = torch.tensor([[[9.0], [1.0], [2.0], [6.0]]])
    expected = {"avg": ([2.5, 2.0], [3.0]), "max": ([4.0, 8.0], [6.0]), "flatten": ([1, 2, 3, 4, 0, 0, 0, 8], None)}
    for pool, (of_maps, of_tokens) in expected.items():
        pooled = PooledNetwork(nn.Identity(), pool, prefix_tokens=1)
        assert pooled(maps)[0].tolist() == of_maps
        assert of_tokens is None or pooled(tokens)[0].tolist() == of_tokens
    assert PooledNetwork(nn.Identity(), "cls", prefix_tokens=1)(tokens).tolist() == [[9.0]]
    batch = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    swin = rx.load_encoder("timm:swin_tiny_patch4_window7_224", weights="random", pool="avg")
    assert swin(batch).shape == (2, 768)


def test_pools_of_a_module():
    """The class token is the first token. Features that cannot be pooled are refused."""
    tokens = nn.Unflatten(1, (5, 4))
    encoder = rx.load_encoder(tokens, pool="cls")
    images = torch.arange(20.0)[None]
    assert encoder.module(images).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(rx.RepeatError, match="needs places or tokens"):
        rx.load_encoder(nn.Flatten(), pool="avg").module(torch.zeros(1, 3, 8, 8))
    with pytest.raises(rx.RepeatError, match="unknown pool"):
        rx.load_encoder(nn.Flatten(), pool="best")
