"""Poisons against a slow loop, their own recurrence, a linear classifier, and what the authors publish."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import repeat_xai as rx
from repeat_xai.data.poisons import (
    autoregressive,
    autoregressive_noise,
    largest_difference,
    pairs,
    scaled,
    separable,
    separable_noise,
)
from repeat_xai.seeds import fold, uniforms

SHARED = Path(os.environ.get("REPEAT_XAI_SHARED", Path(__file__).parents[4] / "shared"))


@pytest.fixture
def coefficients():
    """Of three classes; the eight that count sum to 1 in each window."""
    drawn = np.random.default_rng(0).uniform(0, 1, (3, 3, 3, 3))
    drawn[..., 2, 2] = 0
    drawn /= drawn.sum((2, 3), keepdims=True)
    return drawn


@pytest.fixture
def images():
    return np.random.default_rng(1).integers(60, 190, (9, 12, 10, 3)).astype(np.uint8)


LABELS = np.arange(9) % 3


def test_autoregressive_noise_is_that_of_a_slow_loop(coefficients):
    found = autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=7)
    drawn = uniforms(fold(7, "autoregressive"), start=0, stop=9, width=3 * 16 * 14)
    normal = torch.special.ndtri(torch.from_numpy(drawn)).numpy().reshape(9, 3, 16, 14)
    for image, label in enumerate(LABELS):
        for channel in range(3):
            x = normal[image, channel].copy()
            for i in range(2, 16):
                for j in range(2, 14):
                    x[i, j] = sum(
                        coefficients[label, channel, k, m] * x[i - 2 + k, j - 2 + m]
                        for k in range(3)
                        for m in range(3)
                        if (k, m) != (2, 2)
                    )
            np.testing.assert_allclose(found[image, ..., channel], x[4:, 4:], rtol=1e-12)


def test_every_window_obeys_the_process_of_its_class_and_no_other(coefficients):
    noise = autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=7)
    kernels = coefficients.copy()
    kernels[..., 2, 2] = -1
    windows = np.lib.stride_tricks.sliding_window_view(noise, (3, 3), axis=(1, 2))
    for image, label in enumerate(LABELS):
        left = [np.abs(np.einsum("ijckl,ckl->ijc", windows[image], kernel)).max() for kernel in kernels]
        assert left[label] < 1e-12
        assert min(left[other] for other in range(3) if other != label) > 1e-3


def test_an_images_noise_does_not_depend_on_the_others(coefficients):
    many = autoregressive_noise(np.zeros(1200, int), coefficients, size=(4, 4), seed=7)
    few = autoregressive_noise(np.zeros(1001, int), coefficients, size=(4, 4), seed=7)
    assert np.array_equal(many[:1001], few)
    patches = separable_noise(LABELS, size=(12, 10), patch=4, seed=3)
    assert np.array_equal(patches[:6], separable_noise(LABELS[:6], size=(12, 10), patch=4, seed=3))
    assert not np.array_equal(patches, separable_noise(LABELS, size=(12, 10), patch=4, seed=4))


@pytest.mark.parametrize(
    ("norm", "size"),
    [
        ("l2", lambda one: math.sqrt((one**2).sum())),
        ("rms", lambda one: math.sqrt((one**2).mean())),
        ("linf", lambda one: np.abs(one).max()),
    ],
)
def test_noise_has_the_size_it_shall_have(norm, size, images, coefficients):
    noise = scaled(autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=0), 0.03, norm)
    assert [size(one) for one in noise] == pytest.approx([0.03] * 9)
    changed = separable(images, LABELS, epsilon=6 / 255, norm=norm, patch=4, seed=0)
    if norm == "linf":
        assert largest_difference(images, changed) == 6
    difference = (changed.astype(float) - images) / 255
    assert [size(one) for one in difference] == pytest.approx([6 / 255] * 9, abs=12 / 255 / (1 if norm == "l2" else 20))


def test_defaults_are_the_authors():
    grey = np.full((4, 32, 32, 3), 128, np.uint8)
    labels = np.arange(4) % 2
    near = np.zeros((2, 3, 3, 3))
    near[:, :, 1, 1], near[:, :, 0, 0] = 0.6, 0.4
    away = (autoregressive(grey, labels, near, seed=0).astype(float) - 128) / 255
    assert np.sqrt((away**2).sum((1, 2, 3))) == pytest.approx([1] * 4, abs=0.02)
    away = (separable(grey, labels, seed=0).astype(float) - 128) / 255
    assert np.sqrt((away**2).mean((1, 2, 3))) == pytest.approx([6 / 255] * 4, abs=0.001)
    blocks = away.reshape(4, 4, 8, 4, 8, 3)
    assert np.ptp(blocks, axis=(2, 4)).max() == 0


@pytest.mark.parametrize("norm", ["rms", "linf"])
def test_a_linear_classifier_tells_separable_noise_apart(norm):
    labels = np.random.default_rng(0).integers(0, 10, 300)
    noise = scaled(separable_noise(labels, size=(32, 32), patch=8, seed=0), 6 / 255, norm).reshape(300, -1) * 100
    assert LogisticRegression(max_iter=500).fit(noise[:200], labels[:200]).score(noise[200:], labels[200:]) == 1


def test_patches_at_the_edge_are_cut():
    found = separable_noise(np.zeros(1, int), size=(10, 7), patch=4, seed=0)
    assert found.shape == (1, 10, 7, 3)
    assert len(np.unique(found[0, :, 0, 0])) == 3


def test_pixels_stay_in_range(coefficients):
    extreme = np.stack([np.zeros((12, 10, 3)), np.full((12, 10, 3), 255)]).astype(np.uint8)
    found = autoregressive(extreme, np.zeros(2, int), coefficients, epsilon=50 / 255, norm="linf", seed=0)
    assert (found[0] <= 50).all()
    assert (found[1] >= 205).all()
    assert largest_difference(extreme, found) == 50


def test_poisoned_images_are_read_from_arrays_and_files(images, tmp_path):
    poisoned = images + np.uint8(8)
    np.savez(tmp_path / "a.npz", images=poisoned[:5], index=np.arange(5))
    np.save(tmp_path / "a.npy", poisoned)
    np.savez(tmp_path / "clean.npz", images=images)
    assert np.array_equal(pairs(images, tmp_path / "a.npz"), poisoned[:5])
    assert np.array_equal(pairs(images[:4], tmp_path / "a.npz"), poisoned[:4])
    assert np.array_equal(pairs(tmp_path / "clean.npz", str(tmp_path / "a.npy")), poisoned)
    assert np.array_equal(pairs(images, np.moveaxis(poisoned, -1, 1)), poisoned)


@pytest.mark.parametrize("kind", ["tensor", "parameter", "delta", "checkpoint"])
def test_noise_of_contrastive_poisoning_is_added(images, tmp_path, kind):
    """As its authors keep it: [n, 3, h, w], a tensor or a checkpoint's delta, in units of 8/255, beyond ±1 cut."""
    delta = torch.rand(9, 3, 12, 10, generator=torch.Generator().manual_seed(0)) * 3 - 1.5
    held = {
        "tensor": delta,
        "parameter": torch.nn.Parameter(delta),
        "delta": {"delta": delta},
        "checkpoint": {"model": {"delta": delta, "backbone.weight": torch.zeros(2)}, "epoch": 3},
    }
    torch.save(held[kind], tmp_path / "a.pth")
    found = pairs(images, tmp_path / "a.pth")
    expected = images / 255 + 8 / 255 * delta.clamp(-1, 1).permute(0, 2, 3, 1).double().numpy()
    np.testing.assert_allclose(found, 255 * expected, atol=0.5 + 1e-4)
    assert largest_difference(images, found) == 8


def test_class_wise_noise_goes_by_label(images, tmp_path):
    delta = torch.tensor([1.0, -1.0, 0.5]).view(3, 1, 1, 1).expand(3, 3, 12, 10).clone()
    torch.save(delta, tmp_path / "a.pt")
    found = pairs(images, tmp_path / "a.pt", labels=LABELS).astype(int) - images
    assert [np.unique(one).tolist() for one in found[:3]] == [[8], [-8], [4]]
    assert np.array_equal(pairs(images, delta.numpy() * 8 / 255, labels=LABELS, weight=1.0).astype(int) - images, found)


def test_what_holds_no_poison_is_refused(images, coefficients, tmp_path):
    (tmp_path / "a.pt").write_bytes(b"nothing")
    torch.save({"model": LogisticRegression()}, tmp_path / "b.pt")
    np.savez(tmp_path / "c.npz", pictures=images)
    np.savez(tmp_path / "d.npz", images=images, index=np.arange(9)[::-1])
    np.save(tmp_path / "e.npy", np.array([{}]), allow_pickle=True)
    noise = np.zeros((3, 12, 10, 3))
    for wrong, message in (
        (lambda: pairs(images, tmp_path / "none.npy"), "No such file"),
        (lambda: pairs(images, tmp_path / "a.pt"), "can be read"),
        (lambda: pairs(images, tmp_path / "b.pt"), "can be read"),
        (lambda: pairs(images, tmp_path / "c.npz"), "images"),
        (lambda: pairs(images, tmp_path / "d.npz"), "not the first ones, in order"),
        (lambda: pairs(images, tmp_path / "e.npy"), "can be read"),
        (lambda: pairs(images, images), "no pixel differs"),
        (lambda: pairs(images, images[:, :5]), "are no images or noise for"),
        (lambda: pairs(images, noise), "3 noises are too few for 9 images"),
        (lambda: pairs(images, noise + math.nan, labels=LABELS), "finite floats"),
        (lambda: pairs(images, noise.astype(int)), "finite floats"),
        (lambda: autoregressive(images, LABELS + 1, coefficients, seed=0), "for labels up to 3"),
        (lambda: autoregressive(images, LABELS[:4], coefficients, seed=0), "each of 9 images"),
        (lambda: separable(images, LABELS - 1, seed=0), "a whole number from 0"),
        (lambda: separable(images, LABELS, epsilon=0.0, seed=0), "epsilon must be"),
        (lambda: separable(images, LABELS, patch=0, seed=0), "patch must be"),
    ):
        with pytest.raises(rx.RepeatError, match=message) as told:
            wrong()
        assert "\n" not in str(told.value)


@pytest.mark.real
def test_published_poisons():
    """TAP differs by 8 levels at most; the published processes stay small enough to be noise of length 1."""
    if not (SHARED / "data/cifar10").is_dir():
        pytest.skip(f"no real data in {SHARED}; set REPEAT_XAI_SHARED")
    with np.load(SHARED / "data/cifar10/clean.npz") as clean:
        images, labels = clean["images"], clean["labels"]
    assert largest_difference(images, pairs(images, SHARED / "data/cifar10/poisoned_tap.npz")) == 8
    coefficients = np.load(SHARED / "data/cifar10/ar_coefficients.npy")
    found = autoregressive(images[:200], labels[:200], coefficients, seed=0)
    lengths = np.sqrt((((found.astype(float) - images[:200]) / 255) ** 2).sum((1, 2, 3)))
    assert np.quantile(lengths, 0.1) > 0.9
    assert lengths.max() < 1.02
