"""`Spread` is the mean and standard deviation over passes, and each perturbation does what it says."""

import pytest
import torch
from conftest import small_network
from small_methods import FunctionBase
from torch import nn

import repeat_xai as rx
from repeat_xai.errors import ConfigurationError, EncoderError
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.seeds import fold


def pass_of(by, encoder, image, number=0, seed=0):
    """Return one pass of a perturbation."""
    return by(encoder, image, number=number, seed=seed)


def test_it_is_the_mean_and_deviation_of_its_passes(encoder, image):
    by, base = rx.InputDropout(), rx.Saliency()
    explanation = rx.Spread(base=base, by=by, passes=5)(encoder, image, seed=7)
    maps = []
    for number in range(5):
        seed = fold(7, "pass", number)
        changed = by(encoder, image, number=number, seed=fold(seed, "perturbation", image.photo.digest))
        maps.append(base.importance(changed.encoder, changed.image, seed=seed))
    maps = torch.stack(maps)
    assert torch.allclose(explanation.importance, maps.mean(0).float(), rtol=1e-6)
    assert torch.allclose(explanation.uncertainty, maps.std(0).float(), rtol=1e-5)
    assert explanation.vote_share is None
    assert explanation.provenance["encoder_calls"] == rx.Spread(base=base, passes=5).calls == 10


@pytest.mark.parametrize("name", [name for name in PERTURBATIONS if name != "mc_dropout"])
def test_the_seed_determines_the_result(name, encoder, image):
    method = rx.Spread(by=PERTURBATIONS[name], passes=8)
    first, again = (method(encoder, image, seed=0) for _ in range(2))
    assert first.importance.equal(again.importance)
    assert first.uncertainty.max() > 0
    assert name == "flips" or not first.importance.equal(method(encoder, image, seed=1).importance)


@pytest.mark.parametrize("per", ["channel", "pixel"])
@pytest.mark.parametrize("rescale", [True, False])
def test_input_dropout_keeps_the_given_share_of_values_and_rescales_them(per, rescale, encoder):
    image = rx.load_image(torch.ones(3, 100, 100), encoder)
    seen = pass_of(rx.InputDropout(keep=0.3, rescale=rescale, per=per), encoder, image).image.pixels
    kept = seen != 0
    assert seen[kept].unique().tolist() == pytest.approx([1 / 0.3 if rescale else 1.0])
    assert kept.float().mean() == pytest.approx(0.3, abs=0.02)
    together = kept[0].equal(kept[1]) and kept[0].equal(kept[2])
    assert together == (per == "pixel")


def test_noise_has_the_given_deviation(encoder):
    pixels = torch.linspace(-2, 3, 3 * 100 * 100).view(3, 100, 100)
    image = rx.load_image(pixels, encoder)
    noise = pass_of(rx.Noise(deviation=0.1), encoder, image).image.pixels - pixels
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.02)


def test_flips_are_undone_in_the_map(encoder, image):
    by = rx.Flips(vertical=True)
    axes = [[], [-1], [-2], [-1, -2]]
    for number, flipped in enumerate(axes):
        changed = pass_of(by, encoder, image, number)
        assert changed.move_parts(image.pixels).equal(changed.image.pixels)
        assert changed.image.pixels.equal(image.pixels.flip(flipped))
        assert changed.move_back(changed.image.pixels[0]).equal(image.pixels[0])
    unchanged = pass_of(rx.Flips(), encoder, image, 2).image.pixels
    assert unchanged.equal(image.pixels)


def test_the_map_of_a_crop_is_put_back_where_the_crop_was(encoder):
    """Pixels hold their own column, so that a map shows which column each of its values comes from."""
    column = torch.linspace(0, 1, 40).expand(3, 40, 40).contiguous()
    image = rx.load_image(column, encoder)
    corners = set()
    for number in range(4):
        changed = pass_of(rx.Crops(least=0.5), encoder, image, number, seed=3)
        moved_parts = changed.move_parts((column * 100).round().long()) / 100
        assert (moved_parts - changed.image.pixels).abs().max() < 0.04
        moved_back = changed.move_back(changed.image.pixels[0])
        in_crop = moved_back.isfinite()
        assert in_crop.float().mean() < 1
        assert (moved_back - column[0])[in_crop].abs().max() < 0.03
        corners.add(tuple(in_crop[i, j].item() for i in (0, -1) for j in (0, -1)))
    assert len(corners) == 4


@pytest.mark.parametrize("by", [rx.Flips(vertical=True), rx.Crops(least=0.5), rx.InputDropout(keep=0.1)])
def test_parts_are_moved_along_with_the_image(by, encoder, image):
    """All pixels of a part have one value whatever was done to the image, and superpixels are not computed anew."""
    parts = rx.Squares(cells=4)(image)
    parts[:, :3] = 99
    explanation = rx.Spread(base=rx.KernelShap(samples=40, features=parts), by=by, passes=8)(encoder, image, seed=0)
    if not isinstance(by, rx.Crops):  # enlarging a crop blends the borders of parts
        for part in parts.unique():
            assert explanation.importance[parts == part].std() < 1e-6
    over_superpixels = rx.KernelShap(samples=20, features=rx.Superpixels())
    assert rx.Spread(base=over_superpixels, by=by, passes=8)(encoder, image, seed=0).importance.isfinite().all()


def test_pixels_outside_a_crop_do_not_count(encoder, image):
    ones_or_twos = FunctionBase(lambda encoder, image, *, seed: torch.ones(image.pixels.shape[1:]) + seed % 2)
    explanation = rx.Spread(base=ones_or_twos, by=rx.Crops(least=0.5), passes=8)(encoder, image, seed=0)
    assert ((explanation.importance >= 1) & (explanation.importance <= 2)).all()


@pytest.fixture
def encoder_with_dropout(network):
    return rx.load_encoder(nn.Sequential(*network, nn.Dropout(0.5)).double().eval())


@pytest.mark.parametrize("base", [rx.Saliency(), rx.Relax(masks=8), rx.KernelShap(samples=12)])
def test_the_encoders_own_dropout_can_be_left_on(base, encoder_with_dropout, image):
    method = rx.Spread(base=base, by=rx.McDropout(), passes=4)
    explanation, again = (method(encoder_with_dropout, image, seed=0) for _ in range(2))
    assert explanation.uncertainty.max() > 0
    assert explanation.importance.equal(again.importance)
    assert not any(part.training for part in encoder_with_dropout.module.modules())


@pytest.mark.slow
def test_monte_carlo_dropout_is_the_mean_over_dropped_codes(image):
    """For f(x) = dropout(x), code and copy are dropped independently, so ∂g/∂x̃ is 4x where both keep x, else 0."""
    encoder = rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Dropout(0.5)).double())
    method = rx.Spread(base=rx.Saliency(channels="mean"), by=rx.McDropout(), passes=2000)
    importance = method(encoder, image, seed=0).importance
    expected = image.pixels.mean(0)
    assert (importance - expected).abs().max() < 0.4
    assert (importance - expected).mean().abs() < 0.01


@pytest.mark.parametrize("module", [nn.Flatten(), nn.Sequential(nn.Flatten(), nn.Dropout(0.0))])
def test_monte_carlo_dropout_of_an_encoder_without_dropout_is_refused(module, image):
    with pytest.raises(EncoderError, match="no dropout"):
        rx.Spread(by=rx.McDropout())(rx.load_encoder(module), image, seed=0)


def test_the_encoders_of_an_ensemble_have_equal_weight(image):
    first, second = (rx.load_encoder(small_network(seed).double().eval()) for seed in (0, 1))
    with torch.no_grad():
        second.module[3].weight *= 100
    explanation = rx.Spread(by=rx.Ensemble(encoders=(first, second)), passes=2)(first, image, seed=0)
    maps = torch.stack([rx.Saliency().importance(encoder, image, seed=0) for encoder in (first, second)])
    maps = maps / maps.mean((1, 2), keepdim=True)
    assert torch.allclose(explanation.importance, maps.mean(0).float(), rtol=1e-5)
    assert torch.allclose(explanation.uncertainty, maps.std(0).float(), rtol=1e-4)


def test_an_ensemble_for_other_images_is_refused(encoder, image, network):
    other = rx.load_encoder(network, size=99)
    with pytest.raises(ConfigurationError, match="the same images"):
        rx.Spread(by=rx.Ensemble(encoders=(other, other)), passes=2)(encoder, image, seed=0)


def test_a_stochastic_base_needs_no_perturbation(encoder, image):
    explanation = rx.Spread(base=rx.KernelShap(samples=12), by=None, passes=3)(encoder, image, seed=0)
    assert explanation.uncertainty.max() > 0
