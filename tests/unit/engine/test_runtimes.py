"""Whatever is remembered of an encoder is forgotten when its weights change."""

import pytest
import torch
from torch import nn

from repeat_xai.engine.runtimes import _fingerprint


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_fingerprint_changes_with_any_weight_and_with_their_order(dtype):
    module = nn.Linear(300, 300, dtype=dtype)
    module.register_buffer("odd", torch.tensor([torch.inf, -torch.inf, torch.nan]))
    before = _fingerprint(module)
    assert _fingerprint(module) == before
    module.weight.data[7, 7] += 0.01
    changed = _fingerprint(module)
    assert changed != before
    module.weight.data[[0, 1]] = module.weight.data[[1, 0]]
    assert _fingerprint(module) != changed
    assert _fingerprint(nn.LazyLinear(3)) == []
