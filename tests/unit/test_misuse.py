"""What a user may plausibly get wrong in Python is said in one line.

In a process of its own, where types are not checked: as users run it.
"""

import subprocess
import sys

CODE = """
import numpy as np, torch, repeat_xai as rx
from repeat_xai import metrics
from repeat_xai.data.poisons import separable
from repeat_xai.metrics.detection import detect_poison
from repeat_xai.metrics.faithfulness import FaithfulnessScore
from repeat_xai.metrics.robustness import RobustnessScore

net = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
encoder = rx.load_encoder(net)
pixels = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))
image = rx.load_image(pixels, encoder)
small = rx.Repeat(estimator="exact", base=rx.Relax(masks=4), repeats=2)
good = {"size": (8, 8), "resize": 8, "mean": (0.0,), "std": (1.0,)}

MISTAKES = [
    (lambda: small(net, image, seed=0), "Sequential is no encoder; make one with load_encoder"),
    (lambda: small(encoder, "cat.png", seed=0), "str is no image; make one with load_image"),
    (lambda: rx.Relax()(encoder, pixels, seed=0), "Tensor is no image; make one with load_image"),
    (lambda: rx.load_image(pixels, net), "Sequential is no encoder"),
    (lambda: rx.load_image(None, encoder), "not NoneType"),
    (lambda: rx.load_image(pixels, encoder, protocol="paper"), "for photos"),
    (lambda: rx.load_encoder(torch.nn.Flatten), "a name or an nn.Module"),
    (lambda: rx.load_encoder(net, precision="half"), "unknown precision 'half'"),
    (lambda: rx.load_encoder(net, runtime="tensorrt"), "unknown runtime 'tensorrt'"),
    (lambda: rx.load_encoder(net, runtime="onnxruntime", precision="float16"), "choose another runtime"),
    (lambda: rx.load_encoder(net, size="64"), "size must be a whole number"),
    (lambda: rx.load_encoder("efficientnet_lite0", name="mine"), "its own name"),
    (lambda: rx.load_encoder(torch.nn.Linear(2, 2, device="meta")), "meta"),
    (lambda: small(encoder, image, seed=-1), "seed must be a whole number of at least 0"),
    (lambda: small(encoder, image, seed=0.5), "seed must be a whole number"),
    (lambda: small(encoder, image, seed=None), "seed must be a whole number"),
    (lambda: rx.Relax(masks=6.0), "masks must be a whole number"),
    (lambda: rx.Relax(similarity="cosine"), "similarity must be a kernel"),
    (lambda: rx.Relax(similarity=rx.Cosine), "similarity must be a kernel"),
    (lambda: rx.Relax(grid=7), "grid must be a Grid"),
    (lambda: rx.Relax(normalise="N"), "unknown normalise 'N'; choose one of: mask_sum, count"),
    (lambda: rx.Relax(spread="N"), "unknown spread"),
    (lambda: rx.Grid(style="smooth"), "unknown style"),
    (lambda: rx.Repeat(estimator="exact", base=rx.Relax), "base must be an importance method"),
    (lambda: rx.Repeat(repeats=None), "repeats must be a whole number"),
    (lambda: rx.Repeat(votes="many"), "unknown votes"),
    (lambda: rx.Repeat(estimator="magic"), "unknown estimator"),
    (lambda: rx.Preprocessing(**(good | {"std": (0.0,)})), "std above zero"),
    (lambda: rx.Preprocessing(**(good | {"std": (1.0, 1.0)})), "a value per channel"),
    (lambda: rx.Preprocessing(**(good | {"interpolation": "area"})), "unknown interpolation 'area'"),
    (lambda: rx.Preprocessing(**(good | {"size": (0, 4)})), "size must be"),
    (lambda: rx.Spread(base=rx.Saliency), "base must be"),
    (lambda: rx.Spread(by="dropout"), "by must be"),
    (lambda: rx.Spread(passes=1), "passes must be"),
    (lambda: rx.Spread(by=None), "Saliency finds the same every time"),
    (lambda: rx.Spread(by=rx.Crops(), passes=7), "crops need at least 8 passes"),
    (lambda: rx.InputDropout(keep=1), "keep must lie"),
    (lambda: rx.InputDropout(per="image"), "unknown per"),
    (lambda: rx.Noise(deviation=0), "deviation must be"),
    (lambda: rx.Crops(least=1), "least must be at least 0.5"),
    (lambda: rx.Ensemble(encoders=()), "a tuple of at least two encoders"),
    (lambda: rx.KernelShap(samples=2), "samples must be a whole number of at least 3"),
    (lambda: rx.SmoothGrad(samples=0), "samples must be a whole number of at least 1"),
    (lambda: rx.SmoothGrad(samples=1, moment="variance"), "samples must be a whole number of at least 2"),
    (lambda: rx.Ensemble(encoders=[encoder, encoder]), "a tuple of at least two encoders"),
    (lambda: rx.Repeat(base=rx.Attribution(name="mine", function=print)), "mine finds the same whatever the seed"),
    (lambda: rx.Saliency(channels="sum"), "unknown channels"),
    (lambda: rx.IntegratedGradients(baseline="white"), "unknown baseline"),
    (lambda: rx.SmoothGrad(noise=0), "noise must be a number above zero"),
    (lambda: rx.SmoothGrad(moment="median"), "unknown moment"),
    (lambda: rx.Occlusion(window=4, stride=5), "leave gaps"),
    (lambda: rx.Saliency(reference=()), "a reference is an image"),
    (lambda: rx.Lime(features=rx.Squares), "features must be"),
    (lambda: rx.Attribution(name="x", function=torch.nn.Flatten), "function must take"),
    (lambda: rx.Repeat(base=rx.Saliency()), "Saliency finds the same whatever the seed"),
    (lambda: rx.Saliency()(encoder, "cat.png", seed=0), "str is no image"),
    (lambda: rx.Occlusion()(encoder, pixels, seed=0), "Tensor is no image"),
    (lambda: rx.KernelShap()(encoder, pixels, seed=0), "Tensor is no image"),
    (lambda: rx.Spread()(net, image, seed=0), "Sequential is no encoder"),
    (lambda: metrics.mprt(small, encoder, [image], order="sideways", seed=0), "unknown order"),
    (lambda: metrics.mprt(small, encoder, [image], map_name="votes", seed=0), "unknown map_name"),
    (lambda: metrics.mprt(small, encoder, [image], randomise="half", seed=0), "unknown randomise"),
    (lambda: metrics.emprt(small, encoder, [image], map_name="votes", seed=0), "unknown map_name"),
    (lambda: RobustnessScore(metric="lipschitz"), "unknown metric"),
    (lambda: FaithfulnessScore(curve="addition"), "unknown curve"),
    (lambda: metrics.mprt(small, encoder, [image], seed=0), "no layer that can be reset"),
    (lambda: detect_poison(torch.ones(9), torch.ones(8), share=0.5, seed=0), "the same 4 images or more"),
    (lambda: separable(np.ones((2, 8, 8, 3)), np.zeros(2, int), seed=0), "images are uint8"),
    (lambda: separable(np.ones((2, 8, 8, 3), np.uint8), np.zeros(2, int), norm="l1", seed=0), "unknown norm"),
    (lambda: rx.Squares(cells=0), "cells must be a whole number"),
    (lambda: rx.Superpixels(compactness=0), "compactness must be"),
]
for mistake, message in MISTAKES:
    try:
        mistake()
    except rx.RepeatError as error:
        assert message in str(error), (message, str(error))
        assert chr(10) not in str(error)
    else:
        raise AssertionError(message)

plain, numpys = small(encoder, image, seed=3), small(encoder, image, seed=np.int64(3))
assert torch.equal(plain.importance, numpys.importance)
assert numpys.provenance["seed"] == 3 and type(numpys.provenance["seed"]) is int
assert rx.Repeat(repeats=np.int64(2), base=rx.Relax(masks=np.int32(4)))(encoder, image, seed=3).provenance[
    "method"
]["base"]["masks"] == 4
print("all", len(MISTAKES))
"""


def test_mistakes_are_said_in_one_line():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=200)
    assert done.stdout.startswith("all "), done.stderr
