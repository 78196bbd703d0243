"""Every method is called in one way and gives explanations, alone and in a stream; a base alone has no uncertainty."""

import pytest
import torch
from small_methods import SMALL, FunctionBase

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.errors import ConfigurationError, EncoderError, ImageError
from repeat_xai.methods.base import Base, Method
from repeat_xai.methods.method_names import METHODS
from repeat_xai.types import Answer, Task, only_result, result_of

BY_NAME = {"repeat": rx.Repeat(base=rx.Relax(masks=30), budget=256), "relax": rx.Relax(masks=30), **SMALL}
"""Every method of the registry, at a budget that every test can afford."""
WITH_BASES = {
    "repeat exact": rx.Repeat(estimator="exact", base=rx.Relax(masks=20), repeats=2),
    "repeat over a base": rx.Repeat(estimator="exact", base=SMALL["kernel_shap"], repeats=2),
    "spread": rx.Spread(passes=2),
    "spread of relax": rx.Spread(base=rx.Relax(masks=10), passes=2),
}
every_method = pytest.mark.parametrize("method", [*BY_NAME.values(), *WITH_BASES.values()], ids=[*BY_NAME, *WITH_BASES])


def test_every_method_of_the_registry_is_tested_here():
    assert BY_NAME.keys() == METHODS.keys()
    assert all(type(BY_NAME[name]) is type(method) for name, method in METHODS.items())


@pytest.mark.slow
@every_method
def test_a_call_and_a_stream_give_the_same_explanations(method, encoder, image):
    other = rx.load_image(image.pixels.flip(2), encoder)
    explanation = method(encoder, image)
    streamed = list(method.stream(encoder, iter([image, other])))
    assert isinstance(method, Method)
    assert [type(each) for each in (explanation, *streamed)] == [rx.Explanation] * 3
    assert [each.photo for each in streamed] == [image.photo, other.photo]
    assert streamed[0].maps.keys() == explanation.maps.keys()
    for kind, values in explanation.maps.items():
        assert values.dtype == torch.float32
        assert values.shape == (24, 20)
        assert torch.equal(streamed[0].maps[kind], values)
    assert torch.equal(streamed[1].importance, method(encoder, other, seed=0).importance)


@every_method
def test_uncertainty_is_none_for_a_base_alone_and_no_other_method(method, encoder, image):
    explanation = method(encoder, image, seed=1)
    votes = isinstance(method, rx.Repeat)
    if isinstance(method, rx.Repeat | rx.Relax | rx.Spread):
        assert explanation.uncertainty.isfinite().all()
        assert explanation.uncertainty.amax() > 0
        assert explanation.certain_importance().shape == (24, 20)
    else:
        assert explanation.uncertainty is None
        assert isinstance(method, Base)
        with pytest.raises(ConfigurationError, match="uncertainty"):
            explanation.certain_importance()
    assert (explanation.vote_share is not None) == votes
    assert list(explanation.maps) == [
        kind for kind in ("importance", "uncertainty", "vote_share") if getattr(explanation, kind) is not None
    ]
    if not votes:
        with pytest.raises(ConfigurationError, match="votes"):
            explanation.verdict()


@pytest.mark.parametrize("method", [BY_NAME[name] for name in BY_NAME if name != "repeat"])
def test_the_explanation_of_a_base_is_its_importance_in_single_precision(method, encoder, image):
    importance = method.importance(encoder, image, seed=5)
    assert importance.dtype == torch.float64
    assert torch.equal(method(encoder, image, seed=5).importance, importance.float())


@pytest.mark.slow
@every_method
def test_the_provenance_says_the_seed_the_method_and_the_calls(method, encoder, image):
    with metering() as meter:
        provenance = method(encoder, image, seed=3).provenance
    assert provenance["method"]["name"] == type(method).__name__
    assert provenance["seed"] == 3
    assert provenance["encoder_calls"] == meter.calls > 0
    assert provenance["seconds"] >= 0


@pytest.mark.slow
@every_method
def test_an_explanation_is_saved_and_loaded_with_the_maps_it_has(method, encoder, image, tmp_path):
    explanation = method(encoder, image)
    explanation.save(tmp_path / "cat.npz")
    loaded = rx.Explanation.load(tmp_path / "cat.npz")
    assert loaded.maps.keys() == explanation.maps.keys()
    assert all(torch.equal(values, loaded.maps[kind]) for kind, values in explanation.maps.items())
    assert (loaded.uncertainty is None) == (explanation.uncertainty is None)
    assert (loaded.vote_share is None) == (explanation.vote_share is None)
    assert loaded.provenance == explanation.provenance


class NoBrightImages(torch.nn.Module):
    """Fails on images with large values."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, images):
        if images.detach().abs().amax() > 50:
            raise ValueError("too bright")
        return self.body(images)


@pytest.mark.slow
@every_method
@pytest.mark.filterwarnings("ignore:Setting backward hooks")
def test_tasks_without_an_image_pass_through_in_order(method, encoder, image):
    """They may come first, between images of different shapes, and after an image on which the encoder fails."""
    unreadable = ImageError("no picture")
    bright = rx.load_image(image.pixels * 1000, encoder)
    large = rx.load_image(torch.rand(3, 30, 30, generator=torch.Generator().manual_seed(2)), encoder)
    contents = [unreadable, None, image, unreadable, large, None, bright, image, None]
    tasks = [Task(content, tag=number) for number, content in enumerate(contents)]
    picky = rx.load_encoder(NoBrightImages(encoder.module))

    answers = list(method.answers(picky, iter(tasks), seed=0))

    assert [answer.task.tag for answer in answers] == list(range(len(tasks)))
    for answer, content in zip(answers, contents, strict=True):
        if content is bright:
            assert isinstance(answer.result, EncoderError)
            assert "too bright" in str(answer.result)
        elif isinstance(content, rx.Image):
            assert result_of(answer).photo is content.photo
            assert answer.calls > 0
        else:
            assert answer.result is content
            assert answer.calls == 0
    assert torch.equal(answers[2].result.importance, answers[7].result.importance)


@pytest.mark.slow
@every_method
def test_a_stream_raises_the_error_of_the_image_that_fails(method, encoder, image):
    picky = rx.load_encoder(NoBrightImages(encoder.module))
    explanations = method.stream(picky, [image, rx.load_image(image.pixels * 1000, encoder)])
    assert isinstance(next(explanations), rx.Explanation)
    with pytest.raises(EncoderError, match="too bright"):
        next(explanations)


def test_progress_of_a_base_is_never_called(encoder, image):
    def fail(similarities):
        raise AssertionError("a base measures no similarities")

    tasks = (Task(image),)
    assert only_result(rx.Saliency().answers(encoder, tasks, seed=0, progress=fail)).uncertainty is None


def test_a_base_of_ones_own_is_named_in_the_error_about_its_map(encoder, image):
    with pytest.raises(ConfigurationError, match=r"^FunctionBase gave \[3\]"):
        rx.Spread(base=FunctionBase(lambda *_, seed: torch.zeros(3)))(encoder, image)


def test_the_result_of_an_answer_is_returned_or_its_error_raised(image):
    assert result_of(Answer(task=Task(image), result="a map")) == "a map"
    with pytest.raises(ImageError, match="no picture"):
        only_result([Answer(task=Task(image), result=ImageError("no picture"))])
    with pytest.raises(ValueError, match="unpack"):
        only_result([])


def test_an_attribution_of_ones_own_is_a_method():
    attribution = rx.Attribution(name="mine", function=lambda g, x: x)
    assert isinstance(attribution, Method)
    assert attribution.calls is None
