"""A match finds the planted partners and no others, explains each image toward the other, and keeps to its budget."""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pytest
import torch
from planted import CELLS, planted_encoder, planted_images
from torch import Tensor, nn

import repeat_xai as rx
from repeat_xai.encoders.calls import metering
from repeat_xai.engine.masks import Basis
from repeat_xai.errors import ConfigurationError, EncoderError, ImageError, OutputError
from repeat_xai.methods import fast_estimator
from repeat_xai.methods.correspondence import correspondence
from repeat_xai.methods.match import masked_codes, seeds_of
from repeat_xai.seeds import fold
from repeat_xai.types import Explanation, Photo

GRID = rx.Grid(cells=CELLS)
METHOD = rx.Repeat(base=rx.Relax(masks=50, grid=GRID), budget=128)
PAIRS = CELLS**4


def pairs(partners):
    return {(tuple(partner.a), tuple(partner.b)) for partner in partners}


@pytest.fixture(scope="module")
def planted():
    """An encoder, two images with planted partners, these partners, and the match."""
    encoder = planted_encoder()
    a, b, partners = planted_images(encoder)
    return encoder, a, b, partners, rx.match(encoder, a, b, method=METHOD, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.0, 2.0, 0.5], ids=["linear", "squared", "root"])
def test_every_planted_partner_is_found_and_no_false_match_in_95_of_100_draws(power):
    encoder, false, missed = planted_encoder(power), 0, 0
    for seed in range(100):
        a, b, partners = planted_images(encoder, seed)
        match = rx.match(encoder, a, b, method=METHOD, seed=seed)
        found = pairs(match.partners(0.95))
        false += bool(found - partners)
        missed += len(partners - found)
    assert missed == 0
    assert false <= 5


def test_a_linear_encoder_has_exactly_the_effects_of_its_codes(monkeypatch):
    """With inner products, the effect of a pair is the product of what its squares add to the code."""
    monkeypatch.setattr(fast_estimator, "RIDGE", 0.0)
    encoder = rx.load_encoder(MeanColour())
    squares = torch.randn(2, 3, CELLS, CELLS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a, b = (rx.load_image(part.repeat_interleave(6, 1).repeat_interleave(6, 2), encoder) for part in squares)
    method = replace(METHOD, base=replace(METHOD.base, similarity=rx.Linear()))
    match = rx.match(encoder, a, b, method=method)
    inputs = [image.pixels.double()[:, ::6, ::6] for image in (a, b)]
    torch.testing.assert_close(match.effect.double(), torch.einsum("kij,klm->ijlm", *inputs), atol=1e-6, rtol=1e-6)
    assert match.error.max() < 1e-6


class MeanColour(nn.Module):
    """The code is the sum over squares of their mean colour, in double precision."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3, dtype=torch.float64))

    def forward(self, images):
        return torch.nn.functional.avg_pool2d(images, 6).sum((2, 3)) + self.shift


def test_effects_are_those_of_similarities_made_one_pair_at_a_time(encoder, image):
    other = rx.load_image(image.pixels.flip(2) * 0.7 + 0.1, encoder)
    match = rx.match(encoder, image, other, method=METHOD, seed=5)
    basis = Basis.of(GRID, 24, 20, torch.device("cpu"))
    draws = [next(METHOD.estimate(basis, each, seed=5)) for each in (image, other)]
    masks = [basis.masks(drawn, torch.float64) for drawn in draws]
    codes = [
        torch.cat([encoder((each.pixels.double() * mask)[None]) for mask in row])
        for each, row in zip((image, other), masks, strict=True)
    ]
    similarities = torch.stack([torch.cosine_similarity(code[None], codes[1]) for code in codes[0]])
    effect, error = correspondence(basis, *draws, similarities)
    torch.testing.assert_close(match.effect.flatten(2).flatten(0, 1).double(), effect, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(match.error.flatten(2).flatten(0, 1).double(), error, atol=1e-6, rtol=1e-4)


@dataclass(frozen=True, eq=False)
class ToCode:
    """A kernel that compares codes with a given code in place of the image's own."""

    code: Tensor

    def __call__(self, code, codes):
        return torch.cosine_similarity(self.code[None], codes)


def test_each_image_is_explained_toward_the_code_of_the_other(encoder, image):
    other = rx.load_image(image.pixels.flip(2) * 0.7 + 0.1, encoder)
    match = rx.match(encoder, image, other, method=METHOD, seed=5)
    for explanation, here, there in ((match.a, image, other), (match.b, other, image)):
        code = encoder(there.pixels.double()[None])[0]
        expected = replace(METHOD, base=replace(METHOD.base, similarity=ToCode(code)))(encoder, here, seed=5)
        for name, values in expected.maps.items():
            torch.testing.assert_close(explanation.maps[name], values, atol=1e-6, rtol=0)
        assert explanation.photo is here.photo
        assert explanation.provenance["target"] == {"name": there.photo.name, "sha256": there.photo.digest}
        assert explanation.verdict().abs().sum() > 0


def test_a_match_makes_a_call_for_each_mask_and_two_for_the_images(planted):
    encoder, a, b, _, match = planted
    with metering() as meter:
        rx.match(encoder, a, b, method=METHOD)
    assert meter.calls == match.encoder_calls == 128 + 128 + 2
    assert [each.provenance["encoder_calls"] for each in (match.a, match.b)] == [129, 129]


def test_the_same_seed_gives_the_same_bits_and_the_batch_size_changes_nothing(planted):
    encoder, a, b, _, match = planted
    again = rx.match(encoder, a, b, method=METHOD, seed=3)
    for first, second in (
        (match.effect, again.effect),
        (match.error, again.error),
        (match.a.importance, again.a.importance),
        (match.b.uncertainty, again.b.uncertainty),
    ):
        assert torch.equal(first, second)
    assert not torch.equal(match.effect, rx.match(encoder, a, b, method=METHOD, seed=4).effect)
    in_chunks = replace(METHOD, base=replace(METHOD.base, chunk=7))
    torch.testing.assert_close(rx.match(encoder, a, b, method=in_chunks, seed=3).effect, match.effect)


def test_the_match_of_b_and_a_is_that_of_a_and_b_turned_round(planted):
    encoder, a, b, _, match = planted
    turned = rx.match(encoder, b, a, method=METHOD, seed=3)
    torch.testing.assert_close(turned.effect.permute(2, 3, 0, 1), match.effect)
    torch.testing.assert_close(turned.error.permute(2, 3, 0, 1), match.error, atol=1e-7, rtol=1e-4)
    torch.testing.assert_close(turned.b.importance, match.a.importance)


def test_an_image_is_matched_with_itself_under_independent_masks(planted):
    encoder, a, *_ = planted
    assert seeds_of(a, a, seed=3) == (3, fold(3, "twin"))
    match = rx.match(encoder, a, a, method=METHOD, seed=3)
    assert pairs(match.partners()) == {(cell, cell) for cell in np.ndindex(CELLS, CELLS)}
    basis = Basis.of(GRID, 24, 24, torch.device("cpu"))
    first, second = (next(masked_codes(basis, a, method=METHOD, seed=seed)) for seed in seeds_of(a, a, seed=3))
    assert not torch.equal(first.grids, second.grids)


def made_up(effect, error):
    """Return a match with these effects and errors."""
    photo = Photo(
        name="a.png", picture=np.zeros((2, 2, 3), np.uint8), size=(2, 2), box=(0.0, 0.0, 2.0, 2.0), digest="0"
    )
    made = {"method": {"name": "Repeat"}, "encoder": {"name": "made up"}, "encoder_calls": 1}
    explanation = Explanation(
        importance=torch.zeros(2, 2), uncertainty=None, vote_share=None, photo=photo, provenance=made
    )
    return rx.Match(a=explanation, b=explanation, effect=effect, error=error)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_a_match_is_certain_from_its_limit_on(level):
    """The limit is the root mean square of all effects plus Bonferroni's quantile of the normal distribution."""
    effect = torch.linspace(-1, 1, 16, dtype=torch.float32).view(2, 2, 2, 2)
    typical = effect.square().mean().sqrt().item()
    quantile = NormalDist().inv_cdf(1 - (1 - level) / 16)
    largest = (1 - typical) / quantile
    for factor, certain in ((1.001, 0), (0.999, 1)):
        match = made_up(effect, torch.full_like(effect, largest * factor))
        assert len(match.partners(level)) == certain
    assert tuple(match.partners(level)[0])[:2] == ((1, 1), (1, 1))


def test_noise_alone_has_no_certain_match():
    effect = torch.randn(7, 7, 7, 7, generator=torch.Generator().manual_seed(0))
    assert made_up(effect, torch.ones_like(effect)).partners() == []
    assert made_up(torch.zeros_like(effect), torch.zeros_like(effect)).partners() == []


def test_partners_of_a_cell_are_ranked_by_certainty_on_either_side(planted):
    *_, partners, match = planted
    for cell_a, cell_b in partners:
        of_a, of_b = match.partners_of(cell_a), match.partners_of(cell_b, side="b")
        assert len(of_a) == len(of_b) == CELLS**2
        assert (of_a[0].b, of_b[0].a) == (cell_b, cell_a)
        certainties = [partner.effect / partner.error for partner in of_a]
        assert certainties == sorted(certainties, reverse=True)
        assert of_a[0].effect == match.effect[*cell_a, *cell_b].item()


def test_the_strongest_matches_share_no_part():
    effect = torch.zeros(2, 2, 2, 2)
    for place, value in {(0, 0, 0, 0): 3.0, (0, 0, 0, 1): 2.9, (1, 0, 0, 1): 2.8, (1, 1, 1, 1): 2.7}.items():
        effect[place] = value
    match = made_up(effect, torch.full_like(effect, 0.01))
    assert len(match.partners()) == 4
    assert [partner.effect for partner in match.strongest()] == pytest.approx([3.0, 2.8, 2.7])
    assert len(match.strongest(limit=2)) == 2


def test_a_saved_match_is_read_back(planted, tmp_path):
    match = planted[-1]
    match.save(tmp_path / "match.npz")
    again = rx.Match.load(tmp_path / "match.npz")
    assert torch.equal(again.effect, match.effect)
    assert torch.equal(again.error, match.error)
    for before, after in ((match.a, again.a), (match.b, again.b)):
        assert all(torch.equal(after.maps[name], values) for name, values in before.maps.items())
        assert after.provenance == before.provenance
        assert after.photo.digest == before.photo.digest
    assert again.partners() == match.partners()


def test_a_file_that_is_no_match_is_refused(planted, tmp_path):
    match = planted[-1]
    with pytest.raises(OutputError, match="no such file"):
        rx.Match.load(tmp_path / "missing.npz")
    match.a.save(tmp_path / "explanation.npz")
    match.save(tmp_path / "cut.npz")
    content = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    for name in ("explanation", "cut"):
        with pytest.raises(OutputError, match="not a match"):
            rx.Match.load(tmp_path / f"{name}.npz")
    broken = made_up(torch.full((2, 2, 2, 2), torch.nan), torch.zeros(2, 2, 2, 2))
    with pytest.raises(OutputError, match="not finite"):
        broken.save(tmp_path / "nan.npz")
    assert not (tmp_path / "nan.npz").exists()


@pytest.mark.parametrize("level", [0.5, 1.0, float("nan")])
def test_a_level_out_of_range_is_refused(planted, level):
    with pytest.raises(ConfigurationError, match="level"):
        planted[-1].partners(level)


@pytest.mark.parametrize(("cell", "side"), [((4, 0), "a"), ((0, -1), "b")])
def test_a_cell_that_is_not_there_is_refused(planted, cell, side):
    with pytest.raises(ConfigurationError, match="a cell is"):
        planted[-1].partners_of(cell, side)


@pytest.mark.parametrize(
    "method",
    [rx.Repeat(), rx.Repeat(estimator="exact"), rx.Repeat(budget=5000)],
    ids=["auto", "exact", "many"],
)
def test_a_method_that_does_not_fix_the_masks_is_refused(encoder, image, method):
    with pytest.raises(ConfigurationError, match=r"budget|at most"):
        rx.match(encoder, image, image, method=method)


def test_images_that_cannot_be_matched_are_refused(encoder, image):
    larger = rx.load_image(torch.randn(3, 30, 20, generator=torch.Generator().manual_seed(0)), encoder)
    blank = rx.load_image(torch.zeros(3, 24, 20), encoder)
    with pytest.raises(ConfigurationError, match="24×20 and 30×20"):
        rx.match(encoder, image, larger, method=METHOD)
    for a, b in ((image, blank), (blank, image)):
        with pytest.raises(EncoderError, match="blank"):
            rx.match(encoder, a, b, method=METHOD)
    with pytest.raises(ImageError, match="batch of 2"):
        rx.match(encoder, torch.randn(2, 3, 24, 20), image, method=METHOD)


class Broken(nn.Module):
    """Gives the same value for every image."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, images):
        return torch.full((len(images), 2), self.value)


@pytest.mark.parametrize(("value", "message"), [(float("nan"), "NaN"), (1.0, "ignores its input")])
def test_codes_that_are_nan_or_ignore_the_image_are_refused(image, value, message):
    encoder = rx.load_encoder(Broken(value))
    with pytest.raises(EncoderError, match=message) as error:
        rx.match(encoder, image, rx.load_image(image.pixels.flip(2), encoder), method=METHOD)
    assert "\n" not in str(error.value)
