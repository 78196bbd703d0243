"""Mean and standard deviation over passes, and the passes themselves."""

import pytest
import torch
from torch import nn

import repeat_xai as rx
from repeat_xai.methods.perturbations import PERTURBATIONS
from repeat_xai.seeds import fold


def pass_of(by, encoder, image, number=0, seed=0):
    return by(encoder, image, number=number, seed=seed)


def test_it_is_the_mean_and_deviation_of_its_passes(encoder, image):
    """By the loop of the equation."""
    by, base = rx.InputDropout(), rx.Saliency()
    found = rx.Spread(base=base, by=by, passes=5)(encoder, image, seed=7)
    maps = []
    for number in range(5):
        seed = fold(7, "pass", number)
        how = by(encoder, image, number=number, seed=fold(seed, "perturbation", image.photo.digest))
        maps.append(base(how.encoder, how.image, seed=seed))
    maps = torch.stack(maps)
    assert torch.allclose(found.importance, maps.mean(0).float(), rtol=1e-6)
    assert torch.allclose(found.uncertainty, maps.std(0).float(), rtol=1e-5)
    assert found.vote_share is None
    assert found.provenance["encoder_calls"] == rx.Spread(base=base, passes=5).calls == 10


@pytest.mark.parametrize("name", [name for name in PERTURBATIONS if name != "mc_dropout"])
def test_a_seed_names_the_result(name, encoder, image):
    method = rx.Spread(by=PERTURBATIONS[name], passes=8)
    first, again = (method(encoder, image, seed=0) for _ in range(2))
    assert first.importance.equal(again.importance)
    assert first.uncertainty.max() > 0
    assert name == "flips" or not first.importance.equal(method(encoder, image, seed=1).importance)


@pytest.mark.parametrize("per", ["channel", "pixel"])
@pytest.mark.parametrize("rescale", [True, False])
def test_dropout_keeps_so_many_values_and_rescales_if_asked(per, rescale, encoder):
    image = rx.load_image(torch.ones(3, 100, 100), encoder)
    seen = pass_of(rx.InputDropout(keep=0.3, rescale=rescale, per=per), encoder, image).image.pixels
    kept = seen != 0
    assert seen[kept].unique().tolist() == pytest.approx([1 / 0.3 if rescale else 1.0])
    assert kept.float().mean() == pytest.approx(0.3, abs=0.02)
    together = kept[0].equal(kept[1]) and kept[0].equal(kept[2])
    assert together == (per == "pixel")


def test_noise_has_the_deviation_named(encoder):
    pixels = torch.linspace(-2, 3, 3 * 100 * 100).view(3, 100, 100)
    image = rx.load_image(pixels, encoder)
    noise = pass_of(rx.Noise(deviation=0.1), encoder, image).image.pixels - pixels
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.02)


def test_flips_are_undone(encoder, image):
    by = rx.Flips(vertical=True)
    axes = [[], [-1], [-2], [-1, -2]]
    for number, flipped in enumerate(axes):
        seen, back, forth = pass_of(by, encoder, image, number)[1:]
        assert forth(image.pixels).equal(seen.pixels)
        assert seen.pixels.equal(image.pixels.flip(flipped))
        assert back(seen.pixels[0]).equal(image.pixels[0])
    level = pass_of(rx.Flips(), encoder, image, 2).image.pixels
    assert level.equal(image.pixels)


def test_crops_are_put_back_where_they_were(encoder):
    """A map that says where a pixel is finds its way home."""
    where = torch.linspace(0, 1, 40).expand(3, 40, 40).contiguous()
    image = rx.load_image(where, encoder)
    corners = set()
    for number in range(4):
        seen, back, forth = pass_of(rx.Crops(least=0.5), encoder, image, number, seed=3)[1:]
        assert (forth((where * 100).round().long()) / 100 - seen.pixels).abs().max() < 0.04
        found = back(seen.pixels[0])
        there = found.isfinite()
        assert there.float().mean() < 1
        assert (found - where[0])[there].abs().max() < 0.03
        corners.add(tuple(there[i, j].item() for i in (0, -1) for j in (0, -1)))
    assert len(corners) == 4


@pytest.mark.parametrize("by", [rx.Flips(vertical=True), rx.Crops(least=0.5), rx.InputDropout(keep=0.1)])
def test_parts_are_those_of_the_image_itself(by, encoder, image):
    """Of one part every pixel is worth the same, whatever was done to the image; superpixels are not sought anew."""
    parts = rx.Squares(cells=4)(image)
    parts[:, :3] = 99
    found = rx.Spread(base=rx.KernelShap(samples=40, features=parts), by=by, passes=8)(encoder, image, seed=0)
    if not isinstance(by, rx.Crops):  # which blend the borders of parts as they are put back
        for part in parts.unique():
            assert found.importance[parts == part].std() < 1e-6
    assert rx.Spread(base=rx.KernelShap(samples=20, features=rx.Superpixels()), by=by, passes=8)(encoder, image, seed=0)


def test_what_a_crop_did_not_see_does_not_count(encoder, image):
    def ones(encoder, image, *, seed):
        return torch.ones(image.pixels.shape[1:]) + seed % 2

    found = rx.Spread(base=ones, by=rx.Crops(least=0.5), passes=8)(encoder, image, seed=0)
    assert ((found.importance >= 1) & (found.importance <= 2)).all()


@pytest.fixture
def dropping(network):
    return rx.load_encoder(nn.Sequential(*network, nn.Dropout(0.5)).double().eval())


@pytest.mark.parametrize("base", [rx.Saliency(), rx.Relax(masks=8), rx.KernelShap(samples=12)])
def test_the_encoders_own_dropout_left_on(base, dropping, image):
    method = rx.Spread(base=base, by=rx.McDropout(), passes=4)
    found, again = (method(dropping, image, seed=0) for _ in range(2))
    assert found.uncertainty.max() > 0
    assert found.importance.equal(again.importance)
    assert not any(part.training for part in dropping.module.modules())


def test_monte_carlo_dropout_is_the_mean_over_dropped_codes(image):
    """f(x) = dropout(x): the code and the copy are dropped apart, so ∂g/∂x̃ is x where both are kept, times four."""
    encoder = rx.load_encoder(nn.Sequential(nn.Flatten(), nn.Dropout(0.5)).double())
    found = rx.Spread(base=rx.Saliency(channels="mean"), by=rx.McDropout(), passes=2000)(encoder, image, seed=0)
    expected = image.pixels.mean(0)
    assert (found.importance - expected).abs().max() < 0.4
    assert (found.importance - expected).mean().abs() < 0.01


@pytest.mark.parametrize("module", [nn.Flatten(), nn.Sequential(nn.Flatten(), nn.Dropout(0.0))])
def test_without_dropout_there_is_none_to_leave_on(module, image):
    with pytest.raises(rx.RepeatError, match="has no dropout to leave on"):
        rx.Spread(by=rx.McDropout())(rx.load_encoder(module), image, seed=0)


def test_an_ensemble_weighs_its_encoders_alike(image):
    from conftest import small_network

    first, second = (rx.load_encoder(small_network(seed).double().eval()) for seed in (0, 1))
    with torch.no_grad():
        second.module[3].weight *= 100
    found = rx.Spread(by=rx.Ensemble(encoders=(first, second)), passes=2)(first, image, seed=0)
    maps = torch.stack([rx.Saliency()(one, image, seed=0) for one in (first, second)])
    maps = maps / maps.mean((1, 2), keepdim=True)
    assert torch.allclose(found.importance, maps.mean(0).float(), rtol=1e-5)
    assert torch.allclose(found.uncertainty, maps.std(0).float(), rtol=1e-4)


def test_an_ensemble_takes_the_same_images(encoder, image, network):
    other = rx.load_encoder(network, size=99)
    with pytest.raises(rx.RepeatError, match="do not take the same images"):
        rx.Spread(by=rx.Ensemble(encoders=(other, other)), passes=2)(encoder, image, seed=0)


def test_a_stochastic_base_may_be_spread_by_itself(encoder, image):
    found = rx.Spread(base=rx.KernelShap(samples=12), by=None, passes=3)(encoder, image, seed=0)
    assert found.uncertainty.max() > 0
