"""Mistakes that are easily made in Python are refused in one line.

They are made in one process of their own, where types are not checked, as users run the package. A mistake is a line of
code over the names that `SETUP` makes; to add one, add a line to the table with the class of its error and a word that
the message must hold.
"""

import json
import subprocess
import sys

import pytest

SETUP = """
import numpy as np, torch, repeat_xai as rx
from repeat_xai import metrics
from repeat_xai.data.poisons import separable
from repeat_xai.methods.method_names import MethodSettings, parse
from repeat_xai.metrics.detection import detect_poison
from repeat_xai.metrics.faithfulness import FaithfulnessScore
from repeat_xai.metrics.robustness import RobustnessScore
from repeat_xai.types import Task

network = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
encoder = rx.load_encoder(network)
pixels = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(0))
image = rx.load_image(pixels, encoder)
small = rx.Repeat(estimator="exact", base=rx.Relax(masks=4), repeats=2)


class Named:
    '''A base of one's own.'''

    def importance(self, encoder, image, *, seed):
        return np.zeros((32, 32))


def preprocessing(**changes):
    return rx.Preprocessing(**{"size": (8, 8), "resize": 8, "mean": (0.0,), "std": (1.0,)} | changes)
"""

MISTAKES = [
    # Encoders and images
    ("rx.load_encoder(torch.nn.Flatten)", "ConfigurationError", "nn.Module"),
    ("rx.load_encoder(network, precision='half')", "ConfigurationError", "precision 'half'"),
    ("rx.load_encoder(network, runtime='tensorrt')", "ConfigurationError", "runtime 'tensorrt'"),
    ("rx.load_encoder(network, runtime='onnxruntime', precision='float16')", "ConfigurationError", "runtime"),
    ("rx.load_encoder(network, size='64')", "ConfigurationError", "size"),
    ("rx.load_encoder('efficientnet_lite0', name='mine')", "ConfigurationError", "name"),
    ("rx.load_encoder(torch.nn.Linear(2, 2, device='meta'))", "ConfigurationError", "meta"),
    ("rx.load_image(pixels, network)", "ConfigurationError", "Sequential"),
    ("rx.load_image(None, encoder)", "ImageError", "NoneType"),
    ("rx.load_image(pixels, encoder, protocol='paper')", "ConfigurationError", "photos"),
    ("preprocessing(std=(0.0,))", "ConfigurationError", "std"),
    ("preprocessing(std=(1.0, 1.0))", "ConfigurationError", "value per channel"),
    ("preprocessing(interpolation='area')", "ConfigurationError", "interpolation 'area'"),
    ("preprocessing(size=(0, 4))", "ConfigurationError", "size"),
    # What every method is given
    ("small(network, image)", "ConfigurationError", "Sequential"),
    ("rx.Spread()(network, image)", "ConfigurationError", "Sequential"),
    ("rx.Saliency()(network, image)", "ConfigurationError", "Sequential"),
    ("small(encoder, 'cat.png')", "ConfigurationError", "str"),
    ("rx.Relax()(encoder, pixels)", "ConfigurationError", "Tensor"),
    ("rx.Saliency()(encoder, 'cat.png')", "ConfigurationError", "str"),
    ("rx.Occlusion()(encoder, pixels)", "ConfigurationError", "Tensor"),
    ("rx.KernelShap()(encoder, pixels)", "ConfigurationError", "Tensor"),
    ("list(small.stream(encoder, [image, pixels]))", "ConfigurationError", "Tensor"),
    ("list(rx.Spread().stream(encoder, [pixels]))", "ConfigurationError", "Tensor"),
    ("list(small.answers(encoder, [Task('cat.png')], seed=0))", "ConfigurationError", "str"),
    ("small(encoder, image, seed=-1)", "ConfigurationError", "seed"),
    ("small(encoder, image, seed=0.5)", "ConfigurationError", "seed"),
    ("small(encoder, image, seed=None)", "ConfigurationError", "seed"),
    ("rx.Saliency()(encoder, image, seed=-1)", "ConfigurationError", "seed"),
    ("rx.Spread()(encoder, image, seed='0')", "ConfigurationError", "seed"),
    # The short way to explain
    ("rx.explain(encoder, pixels, method=rx.Relax)", "ConfigurationError", "method"),
    ("rx.explain(encoder, pixels, method='relax')", "ConfigurationError", "method"),
    ("rx.explain_many(encoder, [pixels], method=rx.Relax)", "ConfigurationError", "method"),
    ("rx.explain(encoder, image, method=small, protocol='nonsense')", "ConfigurationError", "protocol"),
    ("rx.explain_many(encoder, [image], method=small, protocol='nonsense')", "ConfigurationError", "protocol"),
    ("rx.explain(encoder, [pixels[None], pixels[None]], method=small)", "ImageError", "batches"),
    ("list(rx.explain_many(encoder, [(pixels[None], pixels[None])], method=small))", "ImageError", "batches"),
    ("rx.explain_many(encoder, pixels, method=small)", "ImageError", "use explain"),
    ("rx.explain_many(encoder, np.zeros((32, 32, 3), np.uint8), method=small)", "ImageError", "use explain"),
    # RELAX
    ("rx.Relax(masks=6.0)", "ConfigurationError", "masks"),
    ("rx.Relax(chunk=0)", "ConfigurationError", "chunk"),
    ("rx.Relax(similarity='cosine')", "ConfigurationError", "similarity"),
    ("rx.Relax(similarity=rx.Cosine)", "ConfigurationError", "similarity"),
    ("rx.Relax(grid=7)", "ConfigurationError", "grid"),
    ("rx.Relax(normalise='N')", "ConfigurationError", "normalise 'N'"),
    ("rx.Relax(normalise_uncertainty='N')", "ConfigurationError", "normalise_uncertainty 'N'"),
    ("rx.Grid(style='smooth')", "ConfigurationError", "style"),
    ("rx.Grid(keep='half')", "ConfigurationError", "keep"),
    ("rx.Rbf(gamma='auto')", "ConfigurationError", "gamma"),
    ("rx.Rbf(gamma=0)", "ConfigurationError", "gamma"),
    ("rx.Rbf(gamma=float('nan'))", "ConfigurationError", "gamma"),
    ("rx.Polynomial(degree='3')", "ConfigurationError", "degree"),
    ("rx.Polynomial(offset='1')", "ConfigurationError", "offset"),
    # REPEAT
    ("rx.Repeat(base=rx.Relax)", "ConfigurationError", "base"),
    ("rx.Repeat(base=lambda encoder, image, seed: pixels[0])", "ConfigurationError", "base"),
    ("rx.Repeat(base=rx.Saliency())", "ConfigurationError", "Saliency"),
    ("rx.Repeat(base=rx.Attribution(name='mine', function=print))", "ConfigurationError", "mine"),
    ("rx.Repeat(base=Named(), estimator='exact')(encoder, image)", "ConfigurationError", "Named gave ndarray"),
    ("rx.Repeat(repeats=None)", "ConfigurationError", "repeats"),
    ("rx.Repeat(votes='many')", "ConfigurationError", "votes"),
    ("rx.Repeat(estimator='magic')", "ConfigurationError", "estimator"),
    ("rx.Repeat(budget='many')", "ConfigurationError", "budget"),
    ("rx.Repeat(budget=2.5)", "ConfigurationError", "budget"),
    ("rx.Repeat(threshold='median')", "ConfigurationError", "threshold 'median'"),
    ("rx.Repeat(threshold=0.5)", "ConfigurationError", "threshold"),
    ("rx.Repeat(threshold=None)", "ConfigurationError", "threshold"),
    ("rx.Repeat(threshold=torch.nn.Threshold)", "ConfigurationError", "threshold"),
    ("rx.Repeat(threshold=torch.mean)(encoder, image)", "ConfigurationError", "threshold"),
    ("rx.Repeat(tolerance='low')", "ConfigurationError", "tolerance"),
    # Spread and its perturbations
    ("rx.Spread(base=rx.Saliency)", "ConfigurationError", "base"),
    ("rx.Spread(base='saliency')", "ConfigurationError", "base"),
    ("rx.Spread(by='dropout')", "ConfigurationError", "by"),
    ("rx.Spread(by=rx.Noise)", "ConfigurationError", "by"),
    ("rx.Spread(passes=1)", "ConfigurationError", "passes"),
    ("rx.Spread(by=None)", "ConfigurationError", "Saliency"),
    ("rx.Spread(by=rx.Crops(), passes=7)", "ConfigurationError", "crops"),
    ("rx.InputDropout(keep=1)", "ConfigurationError", "keep"),
    ("rx.InputDropout(keep=None)", "ConfigurationError", "keep"),
    ("rx.InputDropout(per='image')", "ConfigurationError", "per"),
    ("rx.Noise(deviation=0)", "ConfigurationError", "deviation"),
    ("rx.Noise(deviation='low')", "ConfigurationError", "deviation"),
    ("rx.Crops(least=1)", "ConfigurationError", "least"),
    ("rx.Crops(least='most')", "ConfigurationError", "least"),
    ("rx.Ensemble(encoders=())", "ConfigurationError", "two encoders"),
    ("rx.Ensemble(encoders=[encoder, encoder])", "ConfigurationError", "tuple"),
    # Label-free methods and their parts
    ("rx.KernelShap(samples=2)", "ConfigurationError", "samples"),
    ("rx.SmoothGrad(samples=0)", "ConfigurationError", "samples"),
    ("rx.SmoothGrad(samples=1, moment='variance')", "ConfigurationError", "samples"),
    ("rx.SmoothGrad(noise=0)", "ConfigurationError", "noise"),
    ("rx.SmoothGrad(noise='low')", "ConfigurationError", "noise"),
    ("rx.SmoothGrad(moment='median')", "ConfigurationError", "moment"),
    ("rx.Saliency(channels='sum')", "ConfigurationError", "channels"),
    ("rx.explain_targets(encoder, image, ['dog.png'])", "ConfigurationError", "target"),
    ("rx.explain_targets(encoder, image, image)", "ConfigurationError", "list"),
    ("rx.explain_targets(encoder, image, [image], method=None)", "ConfigurationError", "method"),
    ("rx.explain_many_targets(encoder, image, [image])", "ImageError", "list"),
    ("rx.direction_between(None, [image], [image])", "ConfigurationError", "encoder"),
    ("rx.direction_between(encoder, ['dog.png'], [image])", "ConfigurationError", "image"),
    ("rx.Relax(target='dog.png')", "ConfigurationError", "target"),
    ("rx.Relax(target=3)", "ConfigurationError", "target"),
    ("rx.Relax(target=np.ones(48))", "ConfigurationError", "target"),
    ("rx.Relax(target=rx.Direction)", "ConfigurationError", "target"),
    ("rx.Relax(target=('dog.png',))", "ConfigurationError", "images"),
    ("rx.Lime(target='dog.png')", "ConfigurationError", "target"),
    ("rx.Contrast(toward=image, away=None)", "ConfigurationError", "contrast"),
    ("rx.Contrast(toward=rx.Direction(code=torch.ones(48)), away=image)", "ConfigurationError", "contrast"),
    ("rx.Relax(target=[image])", "ConfigurationError", "target"),
    ("rx.Contrast(toward=image, away='dog.png')", "ConfigurationError", "target"),
    ("rx.Direction(code=image)", "ConfigurationError", "code"),
    ("rx.Saliency(target=())", "ConfigurationError", "target"),
    ("rx.Saliency(target='dog.png')", "ConfigurationError", "target"),
    ("rx.IntegratedGradients(fill='white')", "ConfigurationError", "fill"),
    ("rx.IntegratedGradients(steps=0)", "ConfigurationError", "steps"),
    ("rx.Occlusion(window=4, stride=5)", "ConfigurationError", "stride"),
    ("rx.Lime(features=rx.Squares)", "ConfigurationError", "features"),
    ("rx.Lime(features='squares')", "ConfigurationError", "features"),
    ("rx.Attribution(name='x', function=torch.nn.Flatten)", "ConfigurationError", "function"),
    ("rx.Squares(cells=0)", "ConfigurationError", "cells"),
    ("rx.Superpixels(compactness=0)", "ConfigurationError", "compactness"),
    ("rx.Superpixels(compactness='high')", "ConfigurationError", "compactness"),
    # Explanations
    ("rx.Saliency()(encoder, image).verdict()", "ConfigurationError", "votes"),
    ("rx.Saliency()(encoder, image).certain_importance()", "ConfigurationError", "uncertainty"),
    ("rx.Relax(masks=4)(encoder, image).verdict()", "ConfigurationError", "votes"),
    ("small(encoder, image).verdict(level=0.5)", "ConfigurationError", "level"),
    # Names of methods
    ("parse('repeat:base=saliency')", "ConfigurationError", "base"),
    ("MethodSettings().method('repeat:votes=many')", "ConfigurationError", "votes"),
    ("MethodSettings().method('repeat:threshold=median')", "ConfigurationError", "threshold"),
    # Metrics and poisons
    ("metrics.mprt(small, encoder, [image], order='sideways', seed=0)", "ConfigurationError", "order"),
    ("metrics.mprt(small, encoder, [image], map_name='votes', seed=0)", "ConfigurationError", "map_name"),
    ("RobustnessScore(metric='lipschitz')", "ConfigurationError", "metric"),
    ("FaithfulnessScore(curve='addition')", "ConfigurationError", "curve"),
    ("metrics.mprt(small, encoder, [image], randomise='half', seed=0)", "ConfigurationError", "randomise"),
    ("metrics.mprt(small, encoder, [image], seed=0)", "EncoderError", "layer"),
    ("detect_poison(torch.ones(9), torch.ones(8), share=0.5, seed=0)", "ConfigurationError", "images"),
    ("separable(np.ones((2, 8, 8, 3)), np.zeros(2, int), seed=0)", "ConfigurationError", "uint8"),
    ("separable(np.ones((2, 8, 8, 3), np.uint8), np.zeros(2, int), norm='l1', seed=0)", "ConfigurationError", "norm"),
]
"""A line of code, the class of its error, and a word of the message."""

MAKE_THEM = """
import json, sys

errors = {}
for code in json.load(sys.stdin):
    try:
        eval(code)
    except Exception as error:
        errors[code] = [type(error).__name__, str(error)]
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors():
    """Make all mistakes in a process of its own, and return the class and the message of each error."""
    mistakes = json.dumps([code for code, _, _ in MISTAKES])
    done = subprocess.run(
        [sys.executable, "-c", SETUP + MAKE_THEM], input=mistakes, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "error", "word"), MISTAKES, ids=[code for code, _, _ in MISTAKES])
def test_a_mistake_is_refused_in_one_line(errors, code, error, word):
    assert code in errors, "it is not refused"
    kind, message = errors[code]
    assert kind == error, message
    assert word in message
    assert "\n" not in message


NUMPY_NUMBERS = """
plain, of_numpy = small(encoder, image, seed=3), small(encoder, image, seed=np.int64(3))
assert torch.equal(plain.importance, of_numpy.importance)
assert of_numpy.provenance["seed"] == 3 and type(of_numpy.provenance["seed"]) is int
method = rx.Repeat(repeats=np.int64(2), estimator="exact", base=rx.Relax(masks=np.int32(4)))
explanation = method(encoder, image, seed=3)
assert explanation.provenance["method"] == plain.provenance["method"]
assert torch.equal(explanation.importance, plain.importance)
"""


@pytest.mark.slow
def test_whole_numbers_of_numpy_are_accepted():
    done = subprocess.run([sys.executable, "-c", SETUP + NUMPY_NUMBERS], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
