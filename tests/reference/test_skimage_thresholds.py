"""Thresholds compared with scikit-image, on random, bimodal, constant, narrow and real maps."""

import numpy as np
import pytest
import torch
from skimage import data, filters

import repeat_xai as rx
from repeat_xai.methods.thresholds import THRESHOLDS

random = np.random.default_rng(0)
MAPS = {
    "uniform": random.random((40, 30)),
    "normal": random.normal(size=(40, 30)),
    "skewed": random.exponential(size=(64, 64)),
    "skewed the other way": -random.exponential(size=(64, 64)),
    "bimodal": np.where(random.random((50, 50)) < 0.3, random.normal(5, 1, (50, 50)), random.normal(0, 1, (50, 50))),
    "two values": (random.random((20, 20)) < 0.4) * 1.0,
    "constant": np.full((10, 12), 0.7),
    "zero": np.zeros((10, 12)),
    "tiny range": 0.9 + 1e-9 * random.random((40, 40)),
    "all negative": -1 - random.random((30, 30)),
    "photo": data.camera()[::4, ::4] / 255.0,
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("threshold", ["mean", "otsu", "triangle", "li"])
def test_thresholds_equal_scikit_image(name, threshold):
    theirs = getattr(filters, f"threshold_{threshold}")(MAPS[name].copy())
    ours = THRESHOLDS[threshold](torch.from_numpy(MAPS[name])[None])[0].item()
    spread = np.ptp(MAPS[name])
    assert abs(ours - theirs) <= 1e-6 * spread + 1e-15


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_batch_of_maps_has_the_thresholds_of_each_map_alone(threshold):
    maps = torch.from_numpy(np.stack([random.normal(size=(30, 30)) ** k for k in (1, 2, 3)] + [np.ones((30, 30))]))
    alone = torch.cat([THRESHOLDS[threshold](m[None]) for m in maps])
    torch.testing.assert_close(THRESHOLDS[threshold](maps), alone, rtol=1e-12, atol=0)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_thresholds_equal_scikit_image_on_a_map_of_relax(encoder, image, threshold):
    importance = rx.Relax(masks=50)(encoder, image, seed=0).importance
    theirs = getattr(filters, f"threshold_{threshold}")(importance.numpy().copy())
    np.testing.assert_allclose(THRESHOLDS[threshold](importance[None])[0].item(), theirs, rtol=1e-9)
