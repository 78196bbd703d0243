"""Targets are resolved to codes once, and bad ones are refused in one line."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.engine import targets
from repeat_xai.engine.lockstep import in_lockstep
from repeat_xai.engine.masks import Draws
from repeat_xai.engine.targets import resolve
from repeat_xai.errors import ConfigurationError, EncoderError

DIM = 64


def other(encoder, seed, height=24):
    return rx.load_image(torch.randn(3, height, 20, generator=torch.Generator().manual_seed(seed)), encoder)


def blank(encoder):
    return rx.load_image(torch.zeros(3, 24, 20), encoder)


def test_images_are_encoded_in_batches_and_counted(encoder, monkeypatch):
    monkeypatch.setattr(targets, "IMAGES_PER_BATCH", 3)
    images = tuple(other(encoder, seed, height) for seed, height in enumerate((24, 24, 30, 24, 24, 24, 30)))
    sizes = []
    encoder.module.register_forward_pre_hook(lambda _, args: sizes.append(list(args[0].shape[:3])))
    resolve(encoder, images)  # the encoder's behaviour is observed the first time
    sizes.clear()
    with metering() as meter:
        resolved = resolve(encoder, images)
    assert meter.calls == 7
    assert sizes == [[3, 3, 24], [2, 3, 24], [2, 3, 30]]
    mean = torch.stack([encoder(image.pixels[None])[0] for image in images]).mean(0)
    torch.testing.assert_close(resolved.code, mean)


def test_calls_of_an_encoder_that_does_not_count_them_are_counted(encoder, image):
    class Own:
        """An encoder of a user's own."""

        def __getattr__(self, name):
            return getattr(encoder, name)

        def __call__(self, images):
            with torch.no_grad():
                return encoder.module(images)

    with metering() as meter:
        resolve(Own(), (image, image))
    assert meter.calls == 2


def test_the_direction_between_two_sets_is_the_difference_of_their_mean_codes(encoder):
    first, second = [other(encoder, 1), other(encoder, 2)], [other(encoder, 3)]
    direction = rx.direction_between(encoder, first, second)
    codes = [encoder(image.pixels[None])[0] for image in (*first, *second)]
    torch.testing.assert_close(direction.code, (codes[0] + codes[1]) / 2 - codes[2])


def test_a_direction_measures_reach_whatever_the_kernel(encoder):
    codes = torch.randn(9, DIM, dtype=torch.float64)
    vector = torch.randn(DIM)
    expected = codes @ vector.double() / vector.double().norm()
    for kernel in (rx.Cosine(), rx.Linear(), rx.Rbf(), rx.Polynomial()):
        resolved = resolve(encoder, rx.Direction(code=7 * vector), kernel)
        torch.testing.assert_close(resolved.similarities(kernel, codes[0], codes), expected)


REFUSALS = {
    "an empty set": (lambda e, i: (), "empty"),
    "a set with a blank image": (lambda e, i: (i, blank(e)), "blank"),
    "a blank image": (lambda e, i: blank(e), "blank"),
    "codes": (lambda e, i: torch.ones(2, DIM), "one code"),
    "an empty code": (lambda e, i: torch.ones(0), "one code"),
    "a complex code": (lambda e, i: torch.ones(DIM, dtype=torch.complex64), "one code"),
    "a code with NaN": (lambda e, i: torch.full((DIM,), torch.nan), "NaN"),
    "a code with infinity": (lambda e, i: torch.full((DIM,), torch.inf), "NaN or infinite"),
    "a code of zeros": (lambda e, i: torch.zeros(DIM), "zeros"),
    "a code of another size": (lambda e, i: torch.ones(DIM + 1), "65 values, the image 64"),
    "a direction of another size": (lambda e, i: rx.Direction(code=torch.ones(3)), "3 values, the image 64"),
    "a direction with NaN": (lambda e, i: rx.Direction(code=torch.tensor([1.0, torch.nan])), "NaN"),
    "a direction of zeros": (lambda e, i: rx.Direction(code=torch.zeros(DIM)), "zeros"),
    "a text": (lambda e, i: rx.Text("a red car"), "no text tower"),
    "a contrast with itself": (lambda e, i: rx.Contrast(toward=i, away=i), "equal targets"),
    "a contrast of equal images": (lambda e, i: rx.Contrast(toward=other(e, 1), away=other(e, 1)), "equal targets"),
    "a contrast of a set and its mean": (lambda e, i: rx.Contrast(toward=(i, i), away=i), "equal targets"),
    "a contrast of equal texts": (lambda e, i: rx.Contrast(toward=rx.Text("a"), away=rx.Text("a")), "equal targets"),
    "a contrast of codes at one angle": (
        lambda e, i: rx.Contrast(toward=torch.ones(DIM), away=2 * torch.ones(DIM)),
        "equal targets",
    ),
    "a contrast of codes of two sizes": (lambda e, i: rx.Contrast(toward=i, away=torch.ones(3)), "64 and of 3"),
}


METHODS = {
    "relax": lambda target: rx.Relax(masks=20, target=target),
    "repeat": lambda target: rx.Repeat(base=rx.Relax(masks=20, target=target)),
    "saliency": lambda target: rx.Saliency(target=target),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("method", ["relax", "repeat", "saliency"])
def test_a_bad_target_is_refused_in_one_line(encoder, image, name, method):
    make, words = REFUSALS[name]
    if "at one angle" in name and method == "saliency":
        return  # a − b is a code like any other
    with pytest.raises(ConfigurationError, match=words) as caught:
        METHODS[method](make(encoder, image))(encoder, image, seed=0)
    assert "\n" not in str(caught.value)


def test_a_direction_between_equal_or_empty_sets_is_refused(encoder, image):
    with pytest.raises(ConfigurationError, match="same mean code"):
        rx.direction_between(encoder, [image], [image, image])
    with pytest.raises(ConfigurationError, match="empty"):
        rx.direction_between(encoder, [image], [])


def test_an_encoder_that_gives_no_code_for_the_target_is_reported(image):
    encoder = rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Linear(1440, 3)).double())
    with pytest.raises(EncoderError, match="shapes cannot be multiplied"):
        resolve(encoder, other(encoder, 1, height=30))
    nothing = rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Linear(1440, 3), nn.Threshold(1e9, 0.0)).double())
    with pytest.raises(ConfigurationError, match="zeros"):
        resolve(nothing, image)


def test_estimates_in_lockstep_get_their_own_columns_and_end_at_their_own_time():
    asked = []

    def estimate(number, rounds):
        values = []
        for start in range(rounds):
            values.append((yield Draws(torch.full((2, 1, 1), float(start)), torch.zeros(2, 2))))
            values.append((yield torch.tensor([number, start])))
        (last,) = yield torch.tensor([[float(number)]])
        return values, last

    lockstep = in_lockstep([estimate(0, 1), estimate(1, 3), estimate(2, 2)])
    request = next(lockstep)
    while True:
        asked.append("masks" if isinstance(request, Draws) else list(request.shape))
        answer = request
        if isinstance(request, Draws):
            answer = request.grids[:, 0] * 10 + torch.arange(3.0)
        try:
            request = lockstep.send(answer)
        except StopIteration as stop:
            results = stop.value
            break
    assert asked.count("masks") == 3
    assert asked[:2] == ["masks", [3, 2]]
    for number, rounds in enumerate((1, 3, 2)):
        values, last = results[number]
        assert last.item() == number
        assert [v.tolist() for v in values[::2]] == [[10.0 * start + number] * 2 for start in range(rounds)]
        assert [v.tolist() for v in values[1::2]] == [[number, start] for start in range(rounds)]
