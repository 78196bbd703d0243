"""The fast estimator: its design, its mean map, its votes, and the error it states, each against an oracle."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracles import paper
from scipy.linalg import hadamard as scipy_hadamard
from torch import nn

import repeat_xai as rx
from repeat_xai.engine.masks import Basis, Draws, hadamard
from repeat_xai.methods import fast_estimator as pool
from repeat_xai.methods.fast_estimator import FastEstimator, mean_maps, regression, relax_maps, resample
from repeat_xai.seeds import fold, uniforms

CPU = torch.device("cpu")


def basis(grid, height=24, width=20):
    return Basis.of(grid, height, width, CPU)


@pytest.mark.parametrize("order", [2, 4, 64, 128])
def test_hadamard_is_scipys(order):
    np.testing.assert_array_equal(hadamard(order).numpy(), scipy_hadamard(order))


@pytest.mark.parametrize("cells", [2, 3, 7, 8])
def test_a_block_frees_each_cell_of_the_others_and_of_every_pair(cells):
    grid = rx.Grid(cells=cells)
    draws = basis(grid).draw_blocks(seed=5, start=3, stop=4)
    signs = draws.grids.flatten(1) * 2 - 1
    assert len(signs) == grid.block >= 2 * (cells**2 + 1)
    assert torch.equal(signs.T @ signs, len(signs) * torch.eye(cells**2, dtype=torch.float64))
    assert (signs.sum(0) == 0).all()
    some = signs[:, : min(cells**2, 12)]
    assert (torch.einsum("na,nb,nc->abc", some, some, some) == 0).all()
    assert torch.equal(signs[0::2], -signs[1::2])
    assert torch.equal(draws.shifts[0::2], draws.shifts[1::2])


def test_every_mask_of_a_block_alone_is_an_independent_one():
    """Over many blocks, any one mask keeps each cell half of the time, and each pair a quarter."""
    grid = rx.Grid(cells=3)
    third = basis(grid).draw_blocks(seed=1, start=0, stop=4000).grids.view(4000, grid.block, 9)[:, 2]
    assert (third.mean(0) - 0.5).abs().max() < 5 * (0.25 / 4000) ** 0.5
    pairs = third.T @ third / 4000
    off = pairs[~torch.eye(9, dtype=torch.bool)]
    assert (off - 0.25).abs().max() < 5 * (0.1875 / 4000) ** 0.5


def test_at_another_keep_the_masks_are_independent():
    grid = rx.Grid(cells=3, keep=0.3)
    kept = basis(grid).draw_blocks(seed=1, start=0, stop=200).grids
    assert abs(kept.mean().item() - 0.3) < 5 * (0.21 / kept.numel()) ** 0.5


@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
@pytest.mark.parametrize("keep", [0.5, 0.4])
def test_the_mean_map_of_a_linear_encoder_is_exact(monkeypatch, normalise, keep):
    """E[s·M] by enumeration of every grid and every shift, where s is linear in the mask."""
    monkeypatch.setattr(pool, "RIDGE", 0.0)
    grid = rx.Grid(cells=2, keep=keep)
    found = basis(grid, 9, 11)
    effects = torch.tensor([[0.3, -0.1], [0.2, 0.5]], dtype=torch.float64)

    def similarity(draws):
        """Linear in the masks' means over quarters of the image, of nine pixels by eleven."""
        masks = found.masks(draws, torch.float64)
        means = [[masks[:, y, x].mean((1, 2)) for x in (slice(6), slice(5, 11))] for y in (slice(5), slice(4, 9))]
        return 0.4 + sum(effects[y, x] * means[y][x] for y in range(2) for x in range(2))

    product = torch.zeros(9, 11, dtype=torch.float64)
    for cells in itertools.product((0.0, 1.0), repeat=4):
        one = torch.tensor(cells, dtype=torch.float64).view(1, 2, 2)
        chance = keep ** sum(cells) * (1 - keep) ** (4 - sum(cells))
        for down, right in itertools.product(range(2), range(2)):
            draws = Draws(one, torch.tensor([[down, right]]))
            product += chance / 4 * similarity(draws) * found.masks(draws, torch.float64)[0]
    expected = product / keep if normalise == "mask_sum" else product

    draws = found.draw_blocks(seed=2, start=0, stop=1)
    beta, errors = regression(found, Pool(draws, similarity(draws)))
    assert errors.abs().max() < 1e-12
    (mu,) = mean_maps(found, beta[None], rx.Relax(grid=grid, normalise=normalise))
    torch.testing.assert_close(mu, expected, atol=1e-12, rtol=0)


def test_resamples_are_draws_with_replacement():
    counts = resample(50, 1000, seed=3)
    assert (counts.sum(1) == 1000).all()
    assert abs(counts.mean().item() - 20) < 1e-9
    assert abs(counts.var(0).mean().item() - 1000 * 0.02 * 0.98) < 1
    assert not torch.equal(counts, resample(50, 1000, seed=4))


@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
def test_maps_of_counted_masks_are_those_of_the_masks_repeated(normalise):
    grid = rx.Grid(cells=3)
    found = basis(grid, 8, 8)
    draws = found.draw_blocks(seed=2, start=0, stop=1)
    s = torch.rand(grid.block, dtype=torch.float64)
    counts = resample(grid.block, 40, seed=1)[:2]
    maps = relax_maps(found, Pool(draws, s), counts, rx.Relax(normalise=normalise))
    masks = found.masks(draws, torch.float64)
    for count, values in zip(counts.long(), maps, strict=True):
        again, times = masks.repeat_interleave(count, 0).numpy(), s.repeat_interleave(count).tolist()
        np.testing.assert_allclose(values.numpy(), paper.relax_importance(times, again, normalise), rtol=1e-9)


@pytest.mark.parametrize("side", [2, 5, 24])
def test_totals_at_few_pixels_are_those_at_all(side):
    found = basis(rx.Grid(cells=3))
    draws = found.draw_blocks(seed=2, start=0, stop=1)
    weights = torch.randn(len(draws.grids), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pixels = found.thinned(side)
    some = found.at(*pixels)
    masks = found.masks(draws, torch.float64)
    torch.testing.assert_close(found.totals(draws, weights), torch.einsum("nk,nij->kij", weights, masks))
    torch.testing.assert_close(some.totals(draws, weights), found.totals(draws, weights)[:, *pixels])


def truth(encoder, image, base, sets, **options):
    """Importance and uncertainty from many independent repeats, and the votes' spread."""
    return rx.Repeat(estimator="exact", base=base, repeats=sets, **options)(encoder, image, seed=1234)


@pytest.mark.parametrize(
    ("options", "grid"),
    [
        ({}, rx.Grid()),
        ({"votes": "binary"}, rx.Grid()),
        ({"threshold": "otsu"}, rx.Grid()),
        ({}, rx.Grid(style="rise", cells=5)),
        ({}, rx.Grid(keep=0.35)),
    ],
    ids=["default", "binary", "otsu", "rise", "keep"],
)
def test_it_is_nearer_the_truth_than_ten_repeats_and_says_how_near(options, grid):
    torch.manual_seed(0)
    network = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(90, 12), nn.ReLU(), nn.Linear(12, 6)).double()
    encoder = rx.load_encoder(network)
    pixels = torch.rand(3, 24, 20, generator=torch.Generator().manual_seed(1)) - 0.5
    pixels[:, 4:12, 10:18] += 2
    image = rx.load_image(pixels, encoder)
    base = rx.Relax(masks=300, grid=grid, chunk=300)
    many = truth(encoder, image, base, 150, **options)
    errors = {"fast": [], "ten": [], "stated": []}
    for seed in range(16):
        fast = rx.Repeat(base=base, **options)(encoder, image, seed=seed)
        ten = rx.Repeat(estimator="exact", base=base, repeats=10, **options)(encoder, image, seed=seed)
        errors["fast"].append((fast.importance - many.importance).square().mean().item())
        errors["ten"].append((ten.importance - many.importance).square().mean().item())
        errors["stated"].append(fast.provenance["budget"]["error"] ** 2)
        assert fast.provenance["encoder_calls"] == fast.provenance["budget"]["masks"] + 1 < 3000
    rms = {name: np.mean(values) ** 0.5 for name, values in errors.items()}
    assert rms["fast"] < rms["ten"]
    assert 0.75 < rms["stated"] / rms["fast"] < 1.25


def test_votes_of_the_pool_by_hand(encoder, image):
    """The tally is the cut and the count of the resampled maps, one by one."""
    base = rx.Relax(masks=50)
    found = basis(base.grid)
    draws = found.draw_blocks(seed=2, start=0, stop=1)
    some = Pool(draws, torch.rand(128, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    estimator = FastEstimator(base=base, threshold="mean", votes="weighted", repeats=10, budget=None, tolerance=None)
    counts = resample(128, 50, seed=9)
    voted = pooled.tally(found, some, regression(found, some), counts)
    (mean,) = mean_maps(found, regression(found, some).beta[None], base)
    noise = relax_maps(found, some, counts, base) - relax_maps(found, some, torch.ones(1, 128).double(), base)
    maps = torch.cat((mean + noise, mean - noise)).numpy()
    p, _, share = paper.repeat(maps, np.mean)
    np.testing.assert_allclose(voted[0].numpy(), p, atol=1e-12)
    np.testing.assert_allclose(voted[1].numpy(), share, atol=1e-12)


def test_the_error_by_hand(encoder, image):
    """β moved by the signed errors of its pairs of masks, one move at a time, and voted again by slow loops."""
    base = rx.Relax(masks=50, grid=rx.Grid(cells=3))
    found = basis(base.grid, 24, 20)
    draws = found.draw_blocks(seed=2, start=0, stop=3)
    s = torch.rand(96, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    counts = resample(96, 50, seed=9)
    estimator = FastEstimator(base=base, threshold="mean", votes="weighted", repeats=7, budget=None, tolerance=None)
    some = Pool(draws, s)
    error, target = pooled.judge(found, some, regression(found, some), counts, seed=5).tolist()

    masks = found.masks(draws, torch.float64)
    means = F.adaptive_avg_pool2d(masks[:, None], 3)[:, 0].flatten(1).numpy() - 0.5
    x = np.concatenate((np.ones((96, 1)), means), 1)
    inverse = np.linalg.inv(x.T @ x + np.diag([0] + [pool.RIDGE * 96 / 4] * 9))
    beta = inverse @ x.T @ s.numpy()
    rest = s.numpy() - x @ beta
    free = 1 - np.mean([(x[i] - x[i + 1]) @ inverse @ (x[i] - x[i + 1]) / 2 for i in range(0, 96, 2)])
    errors = [inverse @ (x[i] * rest[i] + x[i + 1] * rest[i + 1]) / free**0.5 for i in range(0, 96, 2)]
    signs = np.where(uniforms(fold(5, "signs"), start=0, stop=pool.MOVES, width=48) < 0.5, 1, -1)
    noise = relax_maps(found, some, counts, base) - relax_maps(found, some, torch.ones(1, 96).double(), base)

    def voted(beta):
        (mean,) = mean_maps(found, torch.from_numpy(beta)[None], base)
        return np.stack([paper.repeat((mean + sign * n).numpy()[None], np.mean)[0] for sign in (1, -1) for n in noise])

    here = voted(beta)
    moves = [voted(beta + sum(e * z for e, z in zip(errors, row, strict=True))).mean(0) for row in signs]
    pairs = (here[:100] + here[100:]) / 2
    expected = np.mean([(p - here.mean(0)) ** 2 for p in moves]) + pairs.var(0, ddof=1).mean() / 100
    assert error == pytest.approx(expected**0.5, rel=1e-9)
    assert target == pytest.approx((here.var(0, ddof=1).mean() / 7) ** 0.5, rel=1e-9)


def test_a_fixed_pool_a_tolerance_and_the_ceiling(encoder, image, monkeypatch):
    base = rx.Relax(masks=100)
    fixed = rx.Repeat(base=base, budget=300)
    found = fixed(encoder, image, seed=0).provenance
    assert found["budget"]["masks"] == 384
    assert found["budget"]["stopped"] == "fixed"
    assert found["encoder_calls"] == fixed.calls == 385
    loose = rx.Repeat(base=base, tolerance=0.5)(encoder, image, seed=0).provenance["budget"]
    assert (loose["masks"], loose["stopped"]) == (256, "accurate enough")
    monkeypatch.setattr(pool, "SIZES", (2, 4))
    strict = rx.Repeat(base=base, tolerance=1e-6)(encoder, image, seed=0).provenance["budget"]
    assert (strict["masks"], strict["stopped"]) == (512, "at its ceiling")
    assert strict["error"] > 1e-6


def test_the_same_seed_gives_the_same_bits_whatever_the_chunk(encoder, image):
    first, again = (rx.Repeat(base=rx.Relax(masks=100))(encoder, image, seed=3) for _ in range(2))
    assert torch.equal(first.importance, again.importance)
    parts = rx.Repeat(base=rx.Relax(masks=100, chunk=7))(encoder, image, seed=3)
    torch.testing.assert_close(parts.importance, first.importance, atol=1e-6, rtol=0)


def test_another_base_is_run_exactly_and_the_user_told(encoder, image):
    def mine(encoder, image, seed):
        return torch.rand(24, 20, generator=torch.Generator().manual_seed(seed % 2**63))

    with pytest.warns(UserWarning, match="exact repeats are used"):
        found = rx.Repeat(base=mine, repeats=3)(encoder, image, seed=0)
    expected = rx.Repeat(estimator="exact", base=mine, repeats=3)(encoder, image, seed=0)
    assert torch.equal(found.importance, expected.importance)
    assert "pool" not in found.provenance


def test_masks_and_their_resampling_are_drawn_apart(encoder, image, monkeypatch):
    drawn = []

    def heard(seed, **where):
        drawn.append(seed)
        return uniforms(seed, **where)

    monkeypatch.setattr("repeat_xai.engine.masks.uniforms", heard)
    rx.Repeat(base=rx.Relax(masks=50), budget=256)(encoder, image, seed=0)
    masks = set(drawn)
    drawn.clear()
    monkeypatch.setattr(pool, "uniforms", heard)
    rx.Repeat(base=rx.Relax(masks=50), budget=256)(encoder, image, seed=0)
    assert len(masks) == 1
    assert len(set(drawn) - masks) == 2


def test_too_few_masks_to_resample_are_run_exactly(encoder, image):
    with pytest.warns(UserWarning, match="10 masks or more"):
        found = rx.Repeat(base=rx.Relax(masks=3), repeats=4)(encoder, image, seed=0)
    assert found.provenance["encoder_calls"] == 13


@pytest.mark.parametrize(
    "bad", [{"pool": 0}, {"tolerance": 0.0}, {"tolerance": float("nan")}, {"tolerance": float("inf")}]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(rx.RepeatError, match=next(iter(bad))):
        rx.Repeat(**bad)
