"""The size of a batch changes no result, and an encoder that misbehaves is refused in one line."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError, EncoderError

RELAX = rx.Relax(masks=60)


def explain(module, pixels=None, **options):
    """Return an explanation by a small REPEAT over RELAX with these options, of random pixels unless some are given."""
    encoder = rx.load_encoder(module)
    generator = torch.Generator().manual_seed(0)
    image = rx.load_image(torch.randn(3, 24, 24, generator=generator) if pixels is None else pixels, encoder)
    return rx.Repeat(estimator="exact", base=rx.Relax(masks=20, **options), repeats=2)(encoder, image, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7, 59, 60, 61, 1000])
def test_results_do_not_depend_on_the_batch_size(encoder, image, chunk):
    method = rx.Repeat(estimator="exact", base=RELAX, repeats=3)
    in_chunks = rx.Repeat(estimator="exact", base=rx.Relax(masks=60, chunk=chunk), repeats=3)
    expected, explanation = method(encoder, image, seed=5), in_chunks(encoder, image, seed=5)
    torch.testing.assert_close(explanation.importance, expected.importance, atol=1e-6, rtol=0)
    torch.testing.assert_close(explanation.uncertainty, expected.uncertainty, atol=1e-6, rtol=0)
    assert torch.equal(explanation.vote_share, expected.vote_share)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(encoder, image):
    method = rx.Repeat(estimator="exact", base=RELAX, repeats=3)
    first, second, other = (method(encoder, image, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first.importance, second.importance)
    assert torch.equal(first.uncertainty, second.uncertainty)
    assert not torch.equal(first.importance, other.importance)


def test_results_do_not_depend_on_what_was_run_before(encoder, image):
    torch.manual_seed(0)
    first = RELAX.importance(encoder, image, seed=1)
    torch.rand(17)
    RELAX(encoder, image, seed=2)
    assert torch.equal(RELAX.importance(encoder, image, seed=1), first)


class Returns(nn.Module):
    """An encoder that returns what a function makes of its images."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, images):
        return self.make(images)


def fail(_):
    raise ValueError("the coil is broken\nand more")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: x.mean((2, 3)) * torch.nan, "NaN"),
        (lambda x: torch.ones(len(x), 4), "same code"),
        (lambda x: x, r"returns \[21, 3, 24, 24\].*choose a pool"),
        (lambda x: x.mean(), r"returns \[\]"),
        (lambda x: x.mean((2, 3))[:0], r"returns \[0, 3\]"),
        (lambda x: (x.mean((2, 3)),), "returns tuple"),
        (lambda x: x.mean((2, 3)).long(), "int64"),
        (fail, "batch of 21×3×24×24: the coil is broken$"),
    ],
    ids=["nan", "constant", "feature map", "scalar", "no codes", "tuple", "integers", "raises"],
)
def test_an_encoder_that_misbehaves_is_refused_in_one_line(make, message):
    with pytest.raises(EncoderError, match=message) as refusal:
        explain(Returns(make))
    assert "\n" not in str(refusal.value)


def test_nan_in_a_later_batch_is_refused():
    with pytest.raises(EncoderError, match="NaN"):
        explain(Returns(lambda x: x.mean((2, 3)) / (len(x) == 10)), chunk=10)


def test_an_infinite_code_of_the_whole_image_is_refused():
    """It is refused although the codes of all masked copies are finite, and so is the kernel of an infinite code."""
    pixels = torch.full((3, 24, 24), 2.0)
    with pytest.raises(EncoderError, match="infinite codes"):
        explain(Returns(lambda x: x.mean((2, 3)) / (x.mean((2, 3)) < 2)), pixels=pixels, similarity=rx.Rbf())


def test_a_blank_image_is_refused(network):
    with pytest.raises(EncoderError, match="blank"):
        explain(network, pixels=torch.zeros(3, 24, 24))


def test_an_image_with_the_wrong_number_of_channels_is_refused(network):
    with pytest.raises(EncoderError, match="21×1×24×24"):
        explain(network, pixels=torch.randn(1, 24, 24))


def test_a_blank_image_is_refused_by_a_trained_encoder():
    """Rounding that differs with the batch must not pass for importance."""
    encoder = rx.load_encoder("efficientnet_lite0")
    image = rx.load_image(torch.zeros(3, 64, 64), encoder)
    with pytest.raises(EncoderError, match="blank"):
        rx.Relax(masks=20)(encoder, image, seed=0)


def test_masks_that_keep_nothing_are_refused(network):
    with pytest.raises(EncoderError, match="keep too little"):
        explain(network, grid=rx.Grid(keep=1e-9))


def test_an_encoder_that_works_in_place_does_not_change_the_image():
    torch.manual_seed(0)
    pixels = torch.randn(3, 24, 24)
    before = pixels.clone()
    explanation = explain(nn.Sequential(nn.ReLU(inplace=True), nn.Flatten()), pixels=pixels)
    assert torch.equal(pixels, before)
    expected = explain(nn.Sequential(nn.ReLU(), nn.Flatten()), pixels=pixels)
    assert torch.equal(explanation.importance, expected.importance)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (lambda code, codes: (codes @ code) * torch.nan, EncoderError, "NaN"),
        (lambda code, codes: (codes @ code)[:, None], ConfigurationError, r"\[20, 1\] for 20 codes"),
        (lambda code, codes: (codes @ code).numpy(), ConfigurationError, "ndarray"),
    ],
)
def test_a_kernel_that_gives_no_number_for_a_code_is_refused(network, kernel, error, message):
    with pytest.raises(error, match=message):
        explain(network, similarity=kernel)


def test_any_function_of_codes_is_a_kernel(network):
    explanation = explain(network, similarity=lambda code, codes: (codes @ code).float())
    torch.testing.assert_close(explanation.importance, explain(network, similarity=rx.Linear()).importance)


def own_encoder(encoder, **attributes):
    """Return a user's encoder, which has only what the protocol asks for, with these further class attributes."""
    attributes |= {
        "name": "own",
        "weights": "none",
        "pool": "none",
        "preprocessing": encoder.preprocessing,
        "device": encoder.device,
        "dtype": encoder.dtype,
        "__call__": lambda self, images: images.mean((2, 3)),
    }
    return type("Own", (), attributes)()


@pytest.mark.parametrize(
    "attributes", [{}, {"__hash__": None}, {"__slots__": ()}], ids=["plain", "unhashable", "slots"]
)
def test_an_encoder_needs_no_more_than_the_protocol_asks_for(encoder, image, attributes):
    explanation = rx.Relax(masks=9)(own_encoder(encoder, **attributes), image, seed=0)
    assert explanation.provenance["encoder_calls"] == 10


def test_calls_are_counted(encoder, image):
    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=20, chunk=7), repeats=3)
    assert method(encoder, image, seed=0).provenance["encoder_calls"] == 3 * 20 + 1
    assert rx.Relax(masks=9)(encoder, image, seed=0).provenance["encoder_calls"] == 10


class LittleMemory(nn.Module):
    """Fails on larger batches as torch, the host's allocator or ONNX Runtime would for lack of memory."""

    def __init__(self, body, max_images, failure):
        super().__init__()
        self.body, self.max_images, self.failure = body, max_images, failure
        self.batches = []

    def forward(self, images):
        self.batches.append(len(images))
        if len(images) > self.max_images:
            raise self.failure
        return self.body(images)


@pytest.mark.slow
@pytest.mark.parametrize(
    "failure",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        MemoryError(),
        RuntimeError("std::bad_alloc"),
    ],
)
@pytest.mark.parametrize("estimator", ["exact", "fast"])
def test_too_little_memory_halves_the_batch_and_changes_nothing(network, image, estimator, failure):
    network = network.double()
    method = rx.Repeat(estimator=estimator, base=rx.Relax(masks=300), repeats=2, budget=256)
    expected = method(rx.load_encoder(network), image, seed=0)
    module = LittleMemory(network, 9, failure)
    explanation = method(rx.load_encoder(module), image, seed=0)
    torch.testing.assert_close(explanation.importance, expected.importance, atol=1e-12, rtol=0)
    assert module.batches[:2] == [2, 2]  # from the check that the encoder is steady
    encoded = sum(images for images in module.batches[2:] if images <= 9)
    assert explanation.provenance["encoder_calls"] == expected.provenance["encoder_calls"] == encoded
    too_large = [images for images in module.batches if images > 9]
    assert too_large == sorted(too_large, reverse=True)
    assert len(too_large) <= 8


def test_too_little_memory_for_a_single_image_is_said_in_one_line(network, image):
    with pytest.raises(EncoderError, match=r"out of memory on a single image of 3×24×20") as refusal:
        RELAX(rx.load_encoder(LittleMemory(network, 0, MemoryError())), image, seed=0)
    assert "\n" not in str(refusal.value)


def test_a_module_that_views_its_memory_is_run_in_its_own_layout():
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images):
            features = self.conv(images)
            return features.view(len(features), -1)

    assert explain(Viewing()).importance.isfinite().all()
