"""A preview is what the method gives with its first masks, and previews do not change the explanation."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.app import live_preview
from repeat_xai.app.live_preview import explain_with_previews, preview, preview_sizes, with_masks
from repeat_xai.encoders.calls import metering
from repeat_xai.errors import EncoderError
from repeat_xai.methods.base import explain_image, explain_images
from repeat_xai.methods.provenance import explanations
from repeat_xai.types import Answer, Task

RELAX = rx.Relax(masks=600, chunk=16)
METHODS = {
    "fast": rx.Repeat(base=RELAX, budget=768),
    "automatic": rx.Repeat(base=replace(RELAX, masks=100)),
    "exact": rx.Repeat(base=replace(RELAX, masks=150), estimator="exact", repeats=5, votes="binary"),
    "relax": RELAX,
}
WITHOUT_PREVIEWS = {
    "base": rx.Saliency(),
    "spread": rx.Spread(passes=2),
    "repeat over a base": rx.Repeat(estimator="exact", base=rx.KernelShap(samples=9), repeats=2),
}


def run(method, encoder, image, seed=0, on_calls=lambda calls: None):
    """Return the explanation, and the previews of it."""
    previews = []
    explanation = explain_with_previews(
        method, encoder, image, seed=seed, on_calls=on_calls, on_preview=previews.append
    )
    return explanation, previews


@pytest.mark.slow
@pytest.mark.parametrize("name", [*METHODS, *WITHOUT_PREVIEWS])
def test_previews_change_nothing(encoder, image, name):
    method = (METHODS | WITHOUT_PREVIEWS)[name]
    explanation, previews = run(method, encoder, image, seed=4)
    expected = method(encoder, image, seed=4)
    assert bool(previews) == (name in METHODS)
    assert explanation.maps.keys() == expected.maps.keys()
    assert all(torch.equal(explanation.maps[kind], values) for kind, values in expected.maps.items())
    assert explanation.provenance["method"] == expected.provenance["method"]
    assert explanation.provenance["encoder_calls"] == expected.provenance["encoder_calls"]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_preview_is_the_method_with_fewer_masks(encoder, image, name):
    method = METHODS[name]
    _, previews = run(method, encoder, image)
    for early, masks in zip(previews, preview_sizes(method), strict=False):
        fewer = with_masks(method, masks)
        assert early.provenance["method"]["name"] == type(method).__name__
        assert early.provenance["encoder_calls"] == masks + 1
        if name in ("fast", "automatic"):
            assert early.provenance["budget"]["masks"] == masks
            if masks < 256:  # a budget of a single block can be previewed, but not chosen
                continue
        expected = fewer(encoder, image)
        torch.testing.assert_close(early.importance, expected.importance, rtol=0, atol=1e-6)
        torch.testing.assert_close(early.uncertainty, expected.uncertainty, rtol=0, atol=1e-6)
        assert early.provenance["method"] == expected.provenance["method"]
        assert early.provenance["encoder_calls"] == expected.provenance["encoder_calls"]


@pytest.mark.slow
def test_the_first_preview_is_near_the_result_and_later_ones_are_nearer(encoder, image):
    explanation, previews = run(rx.Repeat(base=RELAX, budget=4096), encoder, image)
    distances = [(early.importance - explanation.importance).abs().mean().item() for early in previews]
    assert len(distances) == 5
    assert distances[0] < 0.2
    assert distances[-1] < distances[0] / 2


@pytest.mark.parametrize(
    ("method", "sizes"),
    [
        (rx.Repeat(), [128, 256, 512, 1024, 2048]),
        (rx.Repeat(budget=256), [128]),
        (rx.Repeat(base=rx.Relax(grid=rx.Grid(cells=3)), budget=200), [32, 64, 128]),
        (rx.Repeat(estimator="exact"), [128, 256, 512, 1000, 2000, 4000, 8000]),
        (rx.Repeat(estimator="exact", base=rx.Relax(masks=10), repeats=20), [160]),
        (rx.Repeat(estimator="exact", base=rx.KernelShap()), []),
        (rx.Relax(), [128, 256, 512]),
        (rx.Relax(masks=100), []),
        (rx.Spread(), []),
        (rx.Saliency(), []),
    ],
)
def test_each_preview_has_twice_as_many_masks_as_the_one_before(method, sizes):
    assert list(preview_sizes(method)) == sizes


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_previews_cost_no_encoder_calls(encoder, image, name):
    reported = []
    with metering() as meter:
        explanation, _ = run(METHODS[name], encoder, image, on_calls=reported.append)
    assert meter.calls == explanation.provenance["encoder_calls"]
    assert reported == sorted(reported)
    assert reported[-1] == meter.calls


def test_the_work_ends_when_on_calls_raises(encoder, image):
    class EnoughError(BaseException):
        pass

    def on_calls(calls):
        if calls > 100:
            raise EnoughError

    with metering() as meter, pytest.raises(EnoughError):
        run(RELAX, encoder, image, on_calls=on_calls)
    assert 100 < meter.calls <= 100 + 16


def test_the_error_of_an_image_is_raised(encoder):
    blank = rx.load_image(torch.zeros(3, 24, 20), encoder)
    with pytest.raises(EncoderError, match="blank"):
        run(RELAX, encoder, blank)


def test_a_preview_needs_no_encoder_calls_of_its_own(image, encoder):
    similarity = torch.linspace(0.5, 1, 128, dtype=torch.float64)
    with metering() as meter:
        early = preview(rx.Relax(), encoder, image, similarity, seed=0)
    assert meter.calls == 0
    assert early.provenance["method"]["masks"] == 128
    assert early.importance.shape == image.pixels.shape[1:]


class Identified(nn.Module):
    """Remembers which of its copies are run."""

    def __init__(self, body, run):
        super().__init__()
        self.body, self.run = body, run

    def __deepcopy__(self, memo):
        return Identified(self.body, self.run)

    def forward(self, images):
        self.run.add(id(self))
        return self.body(images)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*METHODS, *WITHOUT_PREVIEWS])
def test_a_method_that_needs_gradients_is_given_a_copy_of_the_network(encoder, image, name):
    """It may add hooks to the network, which other requests use at the same time."""
    module = Identified(encoder.module, set())
    identified = rx.load_encoder(module)
    module.run.clear()  # loading tries the encoder out
    run((METHODS | WITHOUT_PREVIEWS)[name], identified, image)
    assert (id(module) in module.run) == (name not in ("base", "spread"))
    assert len(module.run) == 1


class OnDevice(torch.Tensor):
    """Similarities that count how often they are copied to the host."""

    copies = 0

    def cpu(self):
        OnDevice.copies += 1
        return super().cpu()


class Measuring:
    """A method that measures the similarities of many batches."""

    calls = None
    __call__, stream = explain_image, explain_images

    def answers(self, encoder, tasks, *, seed, progress):
        for _ in range(100):
            progress(torch.zeros(16, dtype=torch.float64).as_subclass(OnDevice))
        return explanations(iter([Answer(task=Task(image=None), result=None)]), self, encoder, seed=seed)


def test_similarities_are_not_copied_after_the_last_preview(encoder, image, monkeypatch):
    monkeypatch.setattr(live_preview, "preview_sizes", lambda method: iter([32]))
    monkeypatch.setattr(live_preview, "preview", lambda *given, seed: None)
    with pytest.raises(AssertionError):  # the method explains nothing
        run(Measuring(), encoder, image)
    assert OnDevice.copies == 2
