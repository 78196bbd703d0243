"""Chunks change nothing, and encoders that misbehave are told so in one line."""

import pytest
import torch
from torch import nn

import repeat_xai as rx

SMALL = rx.Relax(masks=60)


def explain(module, pixels=None, **options):
    encoder = rx.load_encoder(module)
    generator = torch.Generator().manual_seed(0)
    image = rx.load_image(torch.randn(3, 24, 24, generator=generator) if pixels is None else pixels, encoder)
    return rx.Repeat(estimator="exact", base=rx.Relax(masks=20, **options), repeats=2)(encoder, image, seed=0)


@pytest.mark.parametrize("chunk", [1, 7, 59, 60, 61, 1000])
def test_results_do_not_change_with_the_chunk(encoder, image, chunk):
    method = rx.Repeat(estimator="exact", base=SMALL, repeats=3)
    chunked = rx.Repeat(estimator="exact", base=rx.Relax(masks=60, chunk=chunk), repeats=3)
    whole, parts = method(encoder, image, seed=5), chunked(encoder, image, seed=5)
    torch.testing.assert_close(parts.importance, whole.importance, atol=1e-6, rtol=0)
    torch.testing.assert_close(parts.uncertainty, whole.uncertainty, atol=1e-6, rtol=0)
    assert torch.equal(parts.vote_share, whole.vote_share)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(encoder, image):
    method = rx.Repeat(estimator="exact", base=SMALL, repeats=3)
    first, second, other = (method(encoder, image, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first.importance, second.importance)
    assert torch.equal(first.uncertainty, second.uncertainty)
    assert not torch.equal(first.importance, other.importance)


def test_what_was_asked_before_changes_nothing(encoder, image):
    torch.manual_seed(0)
    first = SMALL(encoder, image, seed=1)
    torch.rand(17)
    SMALL(encoder, image, seed=2)
    assert torch.equal(SMALL(encoder, image, seed=1), first)


class Returns(nn.Module):
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
        (fail, "fails on a batch of 21×3×24×24: the coil is broken$"),
    ],
    ids=["nan", "constant", "feature map", "scalar", "no codes", "tuple", "integers", "raises"],
)
def test_misbehaving_encoders(make, message):
    with pytest.raises(rx.RepeatError, match=message) as caught:
        explain(Returns(make))
    assert "\n" not in str(caught.value)


def test_nan_that_comes_only_under_a_mask_is_caught():
    with pytest.raises(rx.RepeatError, match="NaN"):
        explain(Returns(lambda x: x.mean((2, 3)) / (len(x) == 10)), chunk=10)


def test_a_code_of_the_whole_image_that_is_infinite_is_caught():
    """Though each masked copy's is fine, and the kernel makes a number of it."""
    whole = torch.full((3, 24, 24), 2.0)
    with pytest.raises(rx.RepeatError, match="infinite codes"):
        explain(Returns(lambda x: x.mean((2, 3)) / (x.mean((2, 3)) < 2)), pixels=whole, similarity=rx.Rbf())


def test_a_blank_image_is_refused(network):
    with pytest.raises(rx.RepeatError, match="blank"):
        explain(network, pixels=torch.zeros(3, 24, 24))


def test_the_wrong_number_of_channels(network):
    with pytest.raises(rx.RepeatError, match="fails on a batch of 21×1×24×24"):
        explain(network, pixels=torch.randn(1, 24, 24))


def test_a_blank_image_is_refused_by_a_real_encoder_too():
    """Rounding that differs with the batch must not pass for importance."""
    encoder = rx.load_encoder("efficientnet_lite0")
    image = rx.load_image(torch.zeros(3, 64, 64), encoder)
    with pytest.raises(rx.RepeatError, match="blank"):
        rx.Relax(masks=20)(encoder, image, seed=0)


def test_masks_that_keep_nothing_are_refused(network):
    with pytest.raises(rx.RepeatError, match="keep too little"):
        explain(network, grid=rx.Grid(keep=1e-9))


def test_an_encoder_that_works_in_place_leaves_the_image_alone():
    torch.manual_seed(0)
    pixels = torch.randn(3, 24, 24)
    plain, in_place = nn.Flatten(), nn.Sequential(nn.ReLU(inplace=True), nn.Flatten())
    before = pixels.clone()
    found = explain(in_place, pixels=pixels)
    assert torch.equal(pixels, before)
    expected = explain(nn.Sequential(nn.ReLU(), plain), pixels=pixels)
    assert torch.equal(found.importance, expected.importance)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda code, codes: (codes @ code) * torch.nan, "NaN"),
        (lambda code, codes: (codes @ code)[:, None], r"\[20, 1\] for 20 codes"),
        (lambda code, codes: (codes @ code).numpy(), "ndarray"),
    ],
)
def test_similarities_that_are_none(network, kernel, message):
    with pytest.raises(rx.RepeatError, match=message):
        explain(network, similarity=kernel)


def test_any_function_is_a_similarity(network):
    mine = explain(network, similarity=lambda code, codes: (codes @ code).float())
    torch.testing.assert_close(mine.importance, explain(network, similarity=rx.Linear()).importance)


def test_an_encoder_of_ones_own_is_counted(encoder, image):
    class Own:
        name, weights, pool = "own", "none", "none"
        preprocessing, device, dtype = encoder.preprocessing, encoder.device, encoder.dtype

        def __call__(self, images):
            return images.mean((2, 3))

    assert rx.Relax(masks=9)(Own(), image, seed=0).provenance["encoder_calls"] == 10


def test_calls_are_counted(encoder, image):
    made = rx.Repeat(estimator="exact", base=rx.Relax(masks=20, chunk=7), repeats=3)(encoder, image, seed=0).provenance
    assert made["encoder_calls"] == 3 * 20 + 1
    assert rx.Relax(masks=9)(encoder, image, seed=0).provenance["encoder_calls"] == 10


class Narrow(nn.Module):
    """Has memory for so many images at once, and says so as torch, the host's allocator or ONNX Runtime would."""

    def __init__(self, body, most, failure):
        super().__init__()
        self.body, self.most, self.failure = body, most, failure
        self.seen = []

    def forward(self, images):
        self.seen.append(len(images))
        if len(images) > self.most:
            raise self.failure
        return self.body(images)


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
    plenty = method(rx.load_encoder(network), image, seed=0)
    narrow = Narrow(network, 9, failure)
    found = method(rx.load_encoder(narrow), image, seed=0)
    torch.testing.assert_close(found.importance, plenty.importance, atol=1e-12, rtol=0)
    assert narrow.seen[:2] == [2, 2]  # whether it is steady
    done = sum(n for n in narrow.seen[2:] if n <= 9)
    assert found.provenance["encoder_calls"] == plenty.provenance["encoder_calls"] == done
    tried = [n for n in narrow.seen if n > 9]
    assert tried == sorted(tried, reverse=True)
    assert len(tried) <= 8


def test_no_memory_for_a_single_image(network, image):
    with pytest.raises(rx.RepeatError, match=r"out of memory on a single image of 3×24×20") as caught:
        SMALL(rx.load_encoder(Narrow(network, 0, MemoryError())), image, seed=0)
    assert "\n" not in str(caught.value)


def test_a_module_that_looks_at_its_memory_runs_as_it_is():
    class Viewing(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images):
            found = self.conv(images)
            return found.view(len(found), -1)

    assert explain(Viewing()).importance.isfinite().all()


@pytest.mark.parametrize("kind", ["unhashable", "slots"])
def test_an_encoder_of_ones_own_need_be_no_more_than_the_protocol_says(encoder, image, kind):
    class Own:
        __slots__ = () if kind == "slots" else ("__dict__",)
        __hash__ = None if kind == "unhashable" else object.__hash__
        name, weights, pool = "own", "none", "none"
        preprocessing, device, dtype = encoder.preprocessing, encoder.device, encoder.dtype

        def __call__(self, images):
            return images.mean((2, 3))

    assert rx.Relax(masks=9)(Own(), image, seed=0).provenance["encoder_calls"] == 10
