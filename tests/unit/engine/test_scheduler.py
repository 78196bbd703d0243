"""Many images give the same results as each image alone, in order, and an image that fails does so alone."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.engine.masks import Basis
from repeat_xai.engine.scheduler import _Pipeline, replay, run_estimates
from repeat_xai.errors import ConfigurationError, EncoderError, ImageError
from repeat_xai.seeds import fold
from repeat_xai.types import Task, only_result, result_of

RELAX = rx.Relax(masks=60)
ESTIMATES = {
    "relax": rx.Relax(masks=60, chunk=16),
    "exact": rx.Repeat(estimator="exact", base=rx.Relax(masks=30, chunk=16), repeats=4),
    "fast": rx.Repeat(base=rx.Relax(masks=50, chunk=100), budget=384),
    "automatic": rx.Repeat(base=rx.Relax(masks=50, chunk=100)),
}
"""Every kind of estimate, in batches that end within its sets of masks."""


class Counting(nn.Module):
    """Remembers the sizes of its batches."""

    def __init__(self, body):
        super().__init__()
        self.body = body
        self.batches = []

    def forward(self, images):
        self.batches.append(len(images))
        return self.body(images)


class NoBrightImages(nn.Module):
    """Fails on images with large values."""

    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, images):
        if images.abs().amax() > 50:
            raise ValueError("too bright")
        return self.body(images)


def random_images(encoder, count, size=(24, 20), seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [rx.load_image(torch.randn(3, *size, generator=generator), encoder) for _ in range(count)]


@pytest.fixture
def three_at_once(monkeypatch):
    """Let three images be under way at once, as on a GPU."""
    monkeypatch.setattr(_Pipeline, "width", property(lambda pipeline: 3))


@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_a_stream_gives_what_single_calls_give_in_order(encoder, estimator):
    images = random_images(encoder, 3)
    images[1:1] = random_images(encoder, 1, size=(30, 30), seed=5)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=50), repeats=2)
    for explanation, image in zip(method.stream(encoder, iter(images), seed=3), images, strict=True):
        assert explanation.photo is image.photo
        assert torch.equal(explanation.importance, method(encoder, image, seed=3).importance)


def test_an_image_that_cannot_be_explained_fails_alone(encoder):
    first, last = random_images(encoder, 2)
    blank = rx.load_image(torch.zeros(3, 24, 20), encoder)
    answers = list(RELAX.answers(encoder, map(Task, (first, blank, last)), seed=0))
    assert [type(answer.result) for answer in answers] == [rx.Explanation, EncoderError, rx.Explanation]
    assert "blank" in str(answers[1].result)
    with pytest.raises(EncoderError, match="blank"):
        list(rx.Repeat().stream(encoder, [blank], seed=0))


def test_several_images_share_a_batch(encoder, three_at_once):
    images = random_images(encoder, 5)
    method = rx.Repeat(base=rx.Relax(masks=50), budget=256)
    module = Counting(encoder.module)
    in_shared_batches = rx.Repeat(base=rx.Relax(masks=50, chunk=200), budget=256)
    shared = list(in_shared_batches.stream(rx.load_encoder(module), images, seed=1))
    for image, explanation in zip(images, shared, strict=True):
        expected = method(encoder, image, seed=1)
        torch.testing.assert_close(expected.importance, explanation.importance, atol=1e-9, rtol=0)
        assert explanation.provenance["encoder_calls"] == 257
    assert module.batches[:2] == [2, 2]  # from the check that the encoder is steady
    assert sum(module.batches[2:]) == 5 * 257
    assert sorted(module.batches[2:])[1:] == [200] * 6


def test_an_image_on_which_the_encoder_fails_does_so_alone_in_a_shared_batch(encoder, three_at_once):
    first, bright, last = random_images(encoder, 3)
    bright = rx.load_image(bright.pixels * 100, encoder)
    picky = rx.load_encoder(NoBrightImages(encoder.module))
    answers = list(rx.Relax(masks=60, chunk=256).answers(picky, map(Task, (first, bright, last)), seed=0))
    assert [type(answer.result) for answer in answers] == [rx.Explanation, EncoderError, rx.Explanation]
    assert "too bright" in str(answers[1].result)
    expected = RELAX.importance(encoder, last, seed=0)
    torch.testing.assert_close(answers[2].result.importance.double(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("width", [1, 3])
def test_tasks_without_an_image_pass_through_in_order(encoder, monkeypatch, width):
    """They may come first, last, between images of different shapes, and beside images on which the encoder fails."""
    monkeypatch.setattr(_Pipeline, "width", property(lambda pipeline: width))
    first, second = random_images(encoder, 2)
    (large,) = random_images(encoder, 1, size=(30, 30))
    bright = rx.load_image(first.pixels * 100, encoder)
    unreadable = ImageError("no picture")
    contents = [None, unreadable, first, None, unreadable, large, bright, None, second, second, unreadable, None]
    tasks = [Task(content, tag=number) for number, content in enumerate(contents)]
    picky = rx.load_encoder(NoBrightImages(encoder.module))

    answers = list(RELAX.answers(picky, iter(tasks), seed=0))

    assert [answer.task.tag for answer in answers] == list(range(len(tasks)))
    for answer, content in zip(answers, contents, strict=True):
        assert answer.task.image is content
        if content is bright:
            assert isinstance(answer.result, EncoderError)
        elif isinstance(content, rx.Image):
            expected = RELAX(encoder, content, seed=0).importance
            torch.testing.assert_close(result_of(answer).importance, expected, atol=1e-6, rtol=0)
            assert answer.calls == 61
            assert answer.seconds > 0
        else:
            assert answer.result is content
            assert (answer.calls, answer.seconds) == (0, 0.0)


def test_the_next_task_is_not_read_before_the_answer_is_requested(encoder):
    """Where one image is under way at a time, as on a CPU, a slow source of images delays no answer."""
    images, read = random_images(encoder, 3), []

    def tasks():
        for number, image in enumerate(images):
            read.append(number)
            yield Task(image)

    answers = RELAX.answers(encoder, tasks(), seed=0)
    assert read == []
    next(answers)
    assert read == [0]


@pytest.mark.parametrize("content", ["cat.png", torch.zeros(3, 24, 20)])
def test_a_task_that_holds_no_image_is_refused(encoder, image, content):
    with pytest.raises(ConfigurationError, match="is no image"):
        list(RELAX.answers(encoder, [Task(image), Task(content)], seed=0))


def similarities_one_by_one(encoder, image, draws):
    """Return the cosine between the code of the image and of each masked copy, one encoder call at a time."""
    basis = Basis.of(rx.Grid(), *image.pixels.shape[1:], torch.device("cpu"))
    pixels = image.pixels.double()
    codes = [encoder((pixels * mask)[None])[0] for mask in basis.masks(draws, torch.float64)]
    return torch.cosine_similarity(encoder(pixels[None]), torch.stack(codes))


def test_progress_is_given_all_similarities_in_the_order_of_their_masks(encoder, image):
    measured = []
    tasks = (Task(image),)
    only_result(ESTIMATES["exact"].answers(encoder, tasks, seed=3, progress=lambda part: measured.append(part.clone())))
    assert max(len(part) for part in measured) <= 16
    basis = Basis.of(rx.Grid(), 24, 20, torch.device("cpu"))
    expected = [
        similarities_one_by_one(encoder, image, basis.draw(seed=fold(row, image.photo.digest), start=0, stop=30))
        for row in (fold(3, "repeat", repeat) for repeat in range(4))
    ]
    torch.testing.assert_close(torch.cat(measured), torch.cat(expected), atol=1e-12, rtol=0)


def test_a_plan_may_ask_for_codes(encoder, image):
    """The code of the image comes first, then those of its masked copies, also over several batches and requests."""
    basis = Basis.of(rx.Grid(), 24, 20, torch.device("cpu"))
    draws = [basis.draw(seed=1, start=start, stop=start + 20) for start in (0, 20)]
    measured = []

    def estimate(basis, image):
        first = yield draws[0]
        second = yield draws[1]
        return (yield torch.cat((first, second)))

    plan = rx.Relax(chunk=7).plan._replace(codes=True)
    codes = only_result(run_estimates(encoder, (Task(image),), estimate, plan, measured.append))
    pixels = image.pixels.double()
    masks = torch.cat([basis.masks(part, torch.float64) for part in draws])
    expected = torch.cat([encoder(pixels[None])] + [encoder((pixels * mask)[None]) for mask in masks])
    torch.testing.assert_close(codes, expected, atol=1e-12, rtol=0)
    assert len(torch.cat(measured)) == 40


@pytest.mark.parametrize("name", ESTIMATES)
def test_progress_changes_nothing_and_its_similarities_replay_the_run_bit_for_bit(encoder, image, name):
    method, measured = ESTIMATES[name], []
    explanation = only_result(method.answers(encoder, (Task(image),), seed=3, progress=measured.append))
    expected = method(encoder, image, seed=3)
    basis = Basis.of(rx.Grid(), 24, 20, torch.device("cpu"))
    with metering() as meter:
        replayed = replay(method.estimate(basis, image, seed=3), torch.cat(measured))
    assert meter.calls == 0
    assert len(torch.cat(measured)) == expected.provenance["encoder_calls"] - 1
    for kind, values in expected.maps.items():
        assert torch.equal(explanation.maps[kind], values)
        assert torch.equal(getattr(replayed, kind).float(), values)
    assert replayed.record.get("budget") == expected.provenance.get("budget")


class EnoughError(Exception):
    """Raised to end the work."""


@pytest.mark.parametrize("name", ESTIMATES)
def test_progress_may_end_the_work_by_raising(encoder, image, name):
    measured = []

    def progress(part):
        measured.append(len(part))
        if len(measured) == 2:
            raise EnoughError

    with metering() as meter, pytest.raises(EnoughError):
        list(ESTIMATES[name].answers(encoder, (Task(image), Task(image)), seed=0, progress=progress))
    assert meter.calls == sum(measured) + 1
