"""Tests of poisons against a slow loop, their own recurrence, a linear classifier, and the authors' published files."""

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
    poisoned_images,
    scale_noise,
    separable,
    separable_noise,
)
from repeat_xai.seeds import fold, uniforms

SHARED = Path(os.environ.get("REPEAT_XAI_SHARED", Path(__file__).parents[4] / "shared"))


@pytest.fixture
def coefficients():
    """Return coefficients of three classes; in each window, the eight that are used sum to 1."""
    drawn = np.random.default_rng(0).uniform(0, 1, (3, 3, 3, 3))
    drawn[..., 2, 2] = 0
    drawn /= drawn.sum((2, 3), keepdims=True)
    return drawn


@pytest.fixture
def images():
    return np.random.default_rng(1).integers(60, 190, (9, 12, 10, 3)).astype(np.uint8)


LABELS = np.arange(9) % 3


def test_autoregressive_noise_equals_a_slow_loop(coefficients):
    noise = autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=7)
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
            np.testing.assert_allclose(noise[image, ..., channel], x[4:, 4:], rtol=1e-12)


def test_each_window_follows_the_process_of_its_class_and_of_no_other(coefficients):
    noise = autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=7)
    kernels = coefficients.copy()
    kernels[..., 2, 2] = -1
    windows = np.lib.stride_tricks.sliding_window_view(noise, (3, 3), axis=(1, 2))
    for image, label in enumerate(LABELS):
        residuals = [np.abs(np.einsum("ijckl,ckl->ijc", windows[image], kernel)).max() for kernel in kernels]
        assert residuals[label] < 1e-12
        assert min(residuals[other] for other in range(3) if other != label) > 1e-3


def test_the_noise_of_an_image_does_not_depend_on_the_other_images(coefficients):
    many = autoregressive_noise(np.zeros(1200, int), coefficients, size=(4, 4), seed=7)
    few = autoregressive_noise(np.zeros(1001, int), coefficients, size=(4, 4), seed=7)
    assert np.array_equal(many[:1001], few)
    patches = separable_noise(LABELS, size=(12, 10), patch=4, seed=3)
    assert np.array_equal(patches[:6], separable_noise(LABELS[:6], size=(12, 10), patch=4, seed=3))
    assert not np.array_equal(patches, separable_noise(LABELS, size=(12, 10), patch=4, seed=4))


@pytest.mark.parametrize(
    ("norm", "size"),
    [
        ("l2", lambda noise: math.sqrt((noise**2).sum())),
        ("rms", lambda noise: math.sqrt((noise**2).mean())),
        ("linf", lambda noise: np.abs(noise).max()),
    ],
)
def test_noise_is_scaled_to_its_norm(norm, size, images, coefficients):
    noise = scale_noise(autoregressive_noise(LABELS, coefficients, size=(12, 10), seed=0), 0.03, norm)
    assert [size(each) for each in noise] == pytest.approx([0.03] * 9)
    changed = separable(images, LABELS, epsilon=6 / 255, norm=norm, patch=4, seed=0)
    if norm == "linf":
        assert largest_difference(images, changed) == 6
    difference = (changed.astype(float) - images) / 255
    assert [size(each) for each in difference] == pytest.approx(
        [6 / 255] * 9, abs=12 / 255 / (1 if norm == "l2" else 20)
    )


def test_the_defaults_are_those_of_the_authors():
    grey = np.full((4, 32, 32, 3), 128, np.uint8)
    labels = np.arange(4) % 2
    coefficients = np.zeros((2, 3, 3, 3))
    coefficients[:, :, 1, 1], coefficients[:, :, 0, 0] = 0.6, 0.4
    difference = (autoregressive(grey, labels, coefficients, seed=0).astype(float) - 128) / 255
    assert np.sqrt((difference**2).sum((1, 2, 3))) == pytest.approx([1] * 4, abs=0.02)
    difference = (separable(grey, labels, seed=0).astype(float) - 128) / 255
    assert np.sqrt((difference**2).mean((1, 2, 3))) == pytest.approx([6 / 255] * 4, abs=0.001)
    blocks = difference.reshape(4, 4, 8, 4, 8, 3)
    assert np.ptp(blocks, axis=(2, 4)).max() == 0


@pytest.mark.parametrize("norm", ["rms", "linf"])
def test_a_linear_classifier_separates_the_classes_by_separable_noise(norm):
    labels = np.random.default_rng(0).integers(0, 10, 300)
    noise = scale_noise(separable_noise(labels, size=(32, 32), patch=8, seed=0), 6 / 255, norm).reshape(300, -1) * 100
    assert LogisticRegression(max_iter=500).fit(noise[:200], labels[:200]).score(noise[200:], labels[200:]) == 1


def test_patches_at_the_edge_are_cut_off():
    noise = separable_noise(np.zeros(1, int), size=(10, 7), patch=4, seed=0)
    assert noise.shape == (1, 10, 7, 3)
    assert len(np.unique(noise[0, :, 0, 0])) == 3


def test_poisoned_pixels_stay_in_range(coefficients):
    extreme = np.stack([np.zeros((12, 10, 3)), np.full((12, 10, 3), 255)]).astype(np.uint8)
    poisoned = autoregressive(extreme, np.zeros(2, int), coefficients, epsilon=50 / 255, norm="linf", seed=0)
    assert (poisoned[0] <= 50).all()
    assert (poisoned[1] >= 205).all()
    assert largest_difference(extreme, poisoned) == 50


def test_poisoned_images_are_read_from_arrays_and_files(images, tmp_path):
    poisoned = images + np.uint8(8)
    np.savez(tmp_path / "a.npz", images=poisoned[:5], index=np.arange(5))
    np.save(tmp_path / "a.npy", poisoned)
    np.savez(tmp_path / "clean.npz", images=images)
    assert np.array_equal(poisoned_images(images, tmp_path / "a.npz"), poisoned[:5])
    assert np.array_equal(poisoned_images(images[:4], tmp_path / "a.npz"), poisoned[:4])
    assert np.array_equal(poisoned_images(tmp_path / "clean.npz", str(tmp_path / "a.npy")), poisoned)
    assert np.array_equal(poisoned_images(images, np.moveaxis(poisoned, -1, 1)), poisoned)


@pytest.mark.parametrize("kind", ["tensor", "parameter", "delta", "checkpoint"])
def test_noise_of_contrastive_poisoning_is_added(images, tmp_path, kind):
    """Its authors store noise [n, 3, h, w] in units of 8/255, in a tensor or a checkpoint, and clip it to ±1."""
    delta = torch.rand(9, 3, 12, 10, generator=torch.Generator().manual_seed(0)) * 3 - 1.5
    contents = {
        "tensor": delta,
        "parameter": torch.nn.Parameter(delta),
        "delta": {"delta": delta},
        "checkpoint": {"model": {"delta": delta, "backbone.weight": torch.zeros(2)}, "epoch": 3},
    }
    torch.save(contents[kind], tmp_path / "a.pth")
    poisoned = poisoned_images(images, tmp_path / "a.pth")
    expected = images / 255 + 8 / 255 * delta.clamp(-1, 1).permute(0, 2, 3, 1).double().numpy()
    np.testing.assert_allclose(poisoned, 255 * expected, atol=0.5 + 1e-4)
    assert largest_difference(images, poisoned) == 8


def test_noise_for_each_class_is_chosen_by_label(images, tmp_path):
    delta = torch.tensor([1.0, -1.0, 0.5]).view(3, 1, 1, 1).expand(3, 3, 12, 10).clone()
    torch.save(delta, tmp_path / "a.pt")
    noise = poisoned_images(images, tmp_path / "a.pt", labels=LABELS).astype(int) - images
    assert [np.unique(each).tolist() for each in noise[:3]] == [[8], [-8], [4]]
    weighted = poisoned_images(images, delta.numpy() * 8 / 255, labels=LABELS, weight=1.0)
    assert np.array_equal(weighted.astype(int) - images, noise)


def test_files_and_arrays_without_a_poison_are_refused(images, coefficients, tmp_path):
    (tmp_path / "a.pt").write_bytes(b"nothing")
    torch.save({"model": LogisticRegression()}, tmp_path / "b.pt")
    np.savez(tmp_path / "c.npz", pictures=images)
    np.savez(tmp_path / "d.npz", images=images, index=np.arange(9)[::-1])
    np.save(tmp_path / "e.npy", np.array([{}]), allow_pickle=True)
    noise = np.zeros((3, 12, 10, 3))
    for wrong, message in (
        (lambda: poisoned_images(images, tmp_path / "none.npy"), "No such file"),
        (lambda: poisoned_images(images, tmp_path / "a.pt"), "can be read"),
        (lambda: poisoned_images(images, tmp_path / "b.pt"), "can be read"),
        (lambda: poisoned_images(images, tmp_path / "c.npz"), "images"),
        (lambda: poisoned_images(images, tmp_path / "d.npz"), "in order"),
        (lambda: poisoned_images(images, tmp_path / "e.npy"), "can be read"),
        (lambda: poisoned_images(images, images), "no pixel differs"),
        (lambda: poisoned_images(images, images[:, :5]), "no images or noise"),
        (lambda: poisoned_images(images, noise), "too little for 9"),
        (lambda: poisoned_images(images, noise + math.nan, labels=LABELS), "finite floats"),
        (lambda: poisoned_images(images, noise.astype(int)), "finite floats"),
        (lambda: autoregressive(images, LABELS + 1, coefficients, seed=0), "labels up to 3"),
        (lambda: autoregressive(images, LABELS[:4], coefficients, seed=0), "each of 9"),
        (lambda: separable(images, LABELS - 1, seed=0), "whole number"),
        (lambda: separable(images, LABELS, epsilon=0.0, seed=0), "epsilon must be"),
        (lambda: separable(images, LABELS, patch=0, seed=0), "patch must be"),
    ):
        with pytest.raises(rx.RepeatError, match=message) as refused:
            wrong()
        assert "\n" not in str(refused.value)


@pytest.mark.real
def test_published_poisons():
    """TAP differs by 8 levels at most; noise by the published coefficients has length 1."""
    if not (SHARED / "data/cifar10").is_dir():
        pytest.skip(f"no real data in {SHARED}; set REPEAT_XAI_SHARED")
    with np.load(SHARED / "data/cifar10/clean.npz") as clean:
        images, labels = clean["images"], clean["labels"]
    assert largest_difference(images, poisoned_images(images, SHARED / "data/cifar10/poisoned_tap.npz")) == 8
    coefficients = np.load(SHARED / "data/cifar10/ar_coefficients.npy")
    poisoned = autoregressive(images[:200], labels[:200], coefficients, seed=0)
    lengths = np.sqrt((((poisoned.astype(float) - images[:200]) / 255) ** 2).sum((1, 2, 3)))
    assert np.quantile(lengths, 0.1) > 0.9
    assert lengths.max() < 1.02
