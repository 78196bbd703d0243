"""Many images at once are explained as one by one, and what fails does so alone."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.engine.scheduler import _Line

SMALL = rx.Relax(masks=60)


class Counting(nn.Module):
    """Remembers the sizes of its batches."""

    def __init__(self, body):
        super().__init__()
        self.body = body
        self.seen = []

    def forward(self, images):
        self.seen.append(len(images))
        return self.body(images)


def pictures(encoder, count):
    generator = torch.Generator().manual_seed(0)
    return [rx.load_image(torch.randn(3, 24, 20, generator=generator), encoder) for _ in range(count)]


@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_a_stream_gives_what_single_calls_give_in_order(encoder, estimator):
    images = pictures(encoder, 3)
    larger = rx.load_image(torch.randn(3, 30, 30, generator=torch.Generator().manual_seed(5)), encoder)
    images.insert(1, larger)
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=50), repeats=2)
    for found, image in zip(method.stream(encoder, iter(images), seed=3), images, strict=True):
        assert found.photo is image.photo
        assert torch.equal(found.importance, method(encoder, image, seed=3).importance)


def test_one_bad_image_in_a_stream_fails_alone(encoder):
    good, other = pictures(encoder, 2)
    blank = rx.load_image(torch.zeros(3, 24, 20), encoder)
    answers = list(SMALL.answers(encoder, [good, blank, other], seed=0))
    assert [isinstance(answer.result, rx.Explanation) for answer in answers] == [True, False, True]
    assert "blank" in str(answers[1].result)
    with pytest.raises(rx.RepeatError, match="blank"):
        list(rx.Repeat().stream(encoder, [blank], seed=0))


def test_several_images_share_a_batch(encoder, monkeypatch):
    """As on a GPU: batches are filled across images, and the answers are the same."""
    images = pictures(encoder, 5)
    method = rx.Repeat(base=rx.Relax(masks=50), budget=256)
    alone = [method(encoder, image, seed=1) for image in images]
    counting = Counting(encoder.module)
    sharing = rx.load_encoder(counting)
    monkeypatch.setattr(_Line, "width", property(lambda line: 3))
    shared = list(rx.Repeat(base=rx.Relax(masks=50, chunk=200), budget=256).stream(sharing, images, seed=1))
    for a, b in zip(alone, shared, strict=True):
        torch.testing.assert_close(a.importance, b.importance, atol=1e-9, rtol=0)
        assert b.provenance["encoder_calls"] == 257
    assert counting.seen[:2] == [2, 2]  # whether it is steady
    assert sum(counting.seen[2:]) == 5 * 257
    assert sorted(counting.seen[2:])[1:] == [200] * 6


def test_an_image_that_breaks_the_encoder_fails_alone_in_a_shared_batch(encoder, monkeypatch):
    class Picky(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body = body

        def forward(self, images):
            if images.abs().amax() > 50:
                raise ValueError("too bright")
            return self.body(images)

    picky = rx.load_encoder(Picky(encoder.module))
    good, bright, other = pictures(encoder, 3)
    bright = rx.load_image(bright.pixels * 100, encoder)
    monkeypatch.setattr(_Line, "width", property(lambda line: 3))
    answers = list(rx.Relax(masks=60, chunk=256).answers(picky, [good, bright, other], seed=0))
    assert [isinstance(answer.result, rx.Explanation) for answer in answers] == [True, False, True]
    assert "too bright" in str(answers[1].result)
    expected = rx.Relax(masks=60)(encoder, other, seed=0)
    torch.testing.assert_close(answers[2].result.importance.double(), expected, atol=1e-6, rtol=0)
