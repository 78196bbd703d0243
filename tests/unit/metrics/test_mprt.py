"""Layer by layer: which of them does a map depend on?"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
import torchvision
from skimage.metrics import structural_similarity
from torch import nn

import repeat_xai as rx
from repeat_xai.metrics import forgetting, mprt, randomised, spearman, ssim

SMALL = rx.Relax(masks=30)
KINDS = {
    "normal": lambda drawn, n: drawn.normal(size=(n, 40, 30)),
    "ties": lambda drawn, n: drawn.normal(size=(n, 40, 30)).round(1),
    "two values": lambda drawn, n: drawn.random((n, 40, 30)).round(),
    "heavy": lambda drawn, n: drawn.random((n, 40, 30)) ** 9,
    "large": lambda drawn, n: drawn.random((n, 224, 224)).round(3),
}


def pair(kind, n=3):
    drawn = np.random.default_rng(0)
    a, b = (KINDS[kind](drawn, n) for _ in range(2))
    return torch.from_numpy(a), torch.from_numpy(a + b)


@pytest.mark.parametrize("kind", KINDS)
def test_spearman_is_scipys(kind):
    a, b = pair(kind)
    expected = [scipy.stats.spearmanr(x.ravel(), y.ravel()).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(spearman(a, b), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(spearman(a, -a), -1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_ssim_is_scikit_images(kind):
    a, b = pair(kind)
    expected = []
    for x, y in zip(a.numpy(), b.numpy(), strict=True):
        x, y = ((one - one.min()) / np.ptp(one) for one in (x, y))
        how = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1}
        expected.append(structural_similarity(x, y, **how))
    np.testing.assert_allclose(ssim(a, b), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alike", [spearman, ssim])
def test_the_scale_of_a_map_does_not_matter_and_a_constant_one_has_no_answer(alike):
    a, b = pair("normal")
    assert alike(a, 3 * a + 7).tolist() == pytest.approx([1] * 3)
    assert alike(a, b * 1e-9 + 1).tolist() == pytest.approx(alike(a, b).tolist(), abs=1e-5)
    b[1] = 4
    assert alike(a, b).isnan().tolist() == [False, True, False]
    assert alike(a.view(3, 1, 40, 30), a.view(3, 1, 40, 30)).shape == (3, 1)


def nested():
    """Layers inside layers, some that cannot reset themselves, and a norm with a memory."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        block = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
        network = nn.Sequential(nn.Conv2d(3, 4, 5, stride=2), nn.PReLU(), block, nn.AdaptiveAvgPool2d(2), nn.Flatten())
        network.append(nn.Linear(24, 8))
        network(torch.randn(8, 3, 24, 20))
    return network.eval()


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_layers_and_weights_are_those_of_quantus(order):
    from quantus.helpers.model.pytorch_model import PyTorchModel

    network = nested()
    names = []
    theirs = PyTorchModel(network, channel_first=True).get_random_layer_generator(order=order, seed=42)
    for (name, model), (layer, blank) in zip(theirs, forgetting(rx.load_encoder(network), order=order), strict=True):
        assert name == layer
        names.append(name)
        for (key, a), b in zip(blank.module.state_dict().items(), model.state_dict().values(), strict=True):
            assert a.equal(b), (layer, key)
    assert names == ["5", "2.1", "2.0", "1", "0"][:: 1 if order == "top_down" else -1]


def test_the_last_step_has_forgotten_everything_and_the_encoder_nothing(encoder):
    before = {key: value.clone() for key, value in encoder.module.state_dict().items()}
    state = torch.get_rng_state()
    steps = list(forgetting(encoder, "full"))
    whole = randomised(encoder, "full").module.state_dict()
    assert all(value.equal(whole[key]) for key, value in steps[-1][1].module.state_dict().items())
    assert all(value.equal(before[key]) for key, value in encoder.module.state_dict().items())
    assert torch.get_rng_state().equal(state)
    assert steps[0][1].module[0].weight.equal(before["0.weight"])
    assert steps[0][1].weights.endswith("randomised (full, top_down) as far as 3")


def test_only_full_has_attention_and_tokens_for_layers():
    network = torchvision.models.VisionTransformer(32, 16, 1, 2, 12, 24)
    encoder = rx.load_encoder(network, size=32)
    kept, gone = ([name for name, _ in forgetting(encoder, how)] for how in ("quantus", "full"))
    assert set(gone) - set(kept) == {
        "VisionTransformer",
        "encoder",
        "encoder.layers.encoder_layer_0.self_attention",
    }
    assert [name for name in gone if name in kept] == kept


@pytest.fixture
def told(encoder, image):
    """A method whose map is the image times the mean weight of the first layer, and whose uncertainty is constant."""
    found = SMALL(encoder, image, seed=0)

    def method(encoder, image, *, seed):
        weight = encoder.module[0].weight.detach()[0, 0].repeat(5, 4).to(image.pixels)
        return replace(found, importance=image.pixels[0, :, :] + 9 * weight[:24, :20], uncertainty=torch.ones(24, 20))

    return method


def test_a_map_changes_with_the_layers_it_depends_on(told, encoder, image):
    alone = mprt(told, encoder, [image, image], order="independent", seed=0)
    assert alone.layers == ("0", "2", "3")
    np.testing.assert_allclose(alone.spearman[1:], 1)
    np.testing.assert_allclose(alone.ssim[1:], 1)
    blank = told(dict(forgetting(encoder, order="independent"))["0"], image, seed=0)
    trained = told(encoder, image, seed=0)
    expected = scipy.stats.spearmanr(trained.importance.flatten(), blank.importance.flatten()).statistic
    assert alone.spearman[0].tolist() == pytest.approx([expected] * 2, abs=1e-12)
    assert expected < 0.9
    down = mprt(told, encoder, [image], order="top_down", seed=0)
    assert down.layers == ("3", "2", "0")
    assert down.spearman[:, 0].tolist() == pytest.approx([1, 1, expected])
    up = mprt(told, encoder, [image], order="bottom_up", seed=0)
    assert up.spearman[:, 0].tolist() == pytest.approx([expected] * 3)


def test_constant_maps_have_no_answer(told, encoder, image):
    found = mprt(told, encoder, [image], of="uncertainty", seed=0)
    assert found.spearman.isnan().all()
    assert found.ssim.isnan().all()


@pytest.mark.parametrize("randomise", ["quantus", "full"])
def test_it_compares_with_the_trained_encoder_by_the_same_masks(encoder, image, randomise):
    found = mprt(SMALL, encoder, [image], randomise=randomise, seed=5)
    trained = SMALL(encoder, image, seed=5).importance
    for i, (_, blank) in enumerate(forgetting(encoder, randomise)):
        other = SMALL(blank, image, seed=5).importance
        assert found.spearman[i].item() == spearman(trained, other).item()
        assert found.ssim[i].item() == ssim(trained, other).item()
    assert found.spearman.shape == found.ssim.shape == (3, 1)


def test_what_cannot_be_checked_is_refused(encoder, image):
    for wrong, message in (
        (lambda: mprt(SMALL, encoder, [], seed=0), "no images"),
        (lambda: list(forgetting(rx.load_encoder(nn.Flatten()))), "no layer that can be reset"),
        (lambda: spearman(torch.ones(3, 3), torch.ones(3, 4)), "cannot be compared"),
        (lambda: ssim(torch.ones(9, 30), torch.ones(9, 30)), "11×11 or more"),
    ):
        with pytest.raises(rx.RepeatError, match=message):
            wrong()
