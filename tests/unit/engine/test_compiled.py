"""Masking and encoding are compiled as one graph.

The test runs in a process of its own, without the type checks of the other tests, which cannot be compiled.
"""

import shutil
import subprocess
import sys

import pytest
import torch

CODE = """
import sys
import torch, repeat_xai as rx
from skimage import data

device, size = sys.argv[1], int(sys.argv[2])
name = "efficientnet_lite0" if device == "cuda" else torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 5, stride=2), torch.nn.ReLU(), torch.nn.BatchNorm2d(8), torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
)
options = {"device": device, "precision": "float32", "size": size}
compiled, plain = (rx.load_encoder(name, runtime=runtime, **options) for runtime in ("compiled", "torch"))
images = [rx.load_image(photo(), plain) for photo in (data.chelsea, data.coffee, data.rocket)]
method = rx.Repeat(base=rx.Relax(masks=100, chunk=96), budget=256)
for a, b in zip(method.stream(compiled, images, seed=0), method.stream(plain, images, seed=0), strict=True):
    assert a.provenance["ran"]["runtime"] == "compiled", a.provenance["ran"]
    assert a.provenance["ran"]["prepared_seconds"] > 0.5
    assert a.provenance["encoder_calls"] == 257
    assert (a.importance - b.importance).abs().mean() < 1e-3
from torch._dynamo.utils import counters
assert counters["stats"]["unique_graphs"] == 1, counters["stats"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_compiled_encoder_gives_the_same_maps(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    size = "224" if device == "cuda" else "32"
    done = subprocess.run([sys.executable, "-c", CODE, device, size], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
