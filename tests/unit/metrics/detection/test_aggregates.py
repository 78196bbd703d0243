"""Aggregates, which turn a map into one number."""

import numpy as np
import pytest
import scipy.stats
import torch

from repeat_xai.metrics.detection import AGGREGATES


def test_aggregates_by_hand():
    maps = torch.arange(40.0).view(1, 5, 8)
    values = {name: aggregate(maps).item() for name, aggregate in AGGREGATES.items()}
    assert values["mean"] == values["median"] == 19.5
    assert values["top"] == 38.5
    assert values["entropy"] == pytest.approx(scipy.stats.entropy(np.arange(40)))
