"""The fast estimator's masks, mean map, votes and stated error equal their definitions."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracles import paper
from scipy.linalg import hadamard as scipy_hadamard
from small_methods import FunctionBase
from torch import nn

import repeat_xai as rx
from repeat_xai.engine.masks import Basis, Draws, hadamard
from repeat_xai.errors import ConfigurationError
from repeat_xai.methods import fast_estimator
from repeat_xai.methods.fast_estimator import FastEstimator, MeasuredMasks, mean_maps, regression, relax_maps, resample
from repeat_xai.output.figures.captions import caption
from repeat_xai.seeds import fold, uniforms

CPU = torch.device("cpu")


def basis_of(grid, height=24, width=20):
    return Basis.of(grid, height, width, CPU)


@pytest.mark.parametrize("order", [2, 4, 64, 128])
def test_hadamard_matrices_equal_those_of_scipy(order):
    np.testing.assert_array_equal(hadamard(order).numpy(), scipy_hadamard(order))


@pytest.mark.parametrize("cells", [2, 3, 7, 8])
def test_in_a_block_no_cell_is_confounded_with_another_nor_with_a_pair(cells):
    grid = rx.Grid(cells=cells)
    draws = basis_of(grid).draw_blocks(seed=5, start=3, stop=4)
    signs = draws.grids.flatten(1) * 2 - 1
    assert len(signs) == grid.block >= 2 * (cells**2 + 1)
    assert torch.equal(signs.T @ signs, len(signs) * torch.eye(cells**2, dtype=torch.float64))
    assert (signs.sum(0) == 0).all()
    part = signs[:, : min(cells**2, 12)]
    assert (torch.einsum("na,nb,nc->abc", part, part, part) == 0).all()
    assert torch.equal(signs[0::2], -signs[1::2])
    assert torch.equal(draws.shifts[0::2], draws.shifts[1::2])


def test_a_mask_of_a_block_is_distributed_as_an_independent_mask():
    """Over many blocks, one mask keeps each cell half of the time, and each pair of cells a quarter of the time."""
    grid = rx.Grid(cells=3)
    third = basis_of(grid).draw_blocks(seed=1, start=0, stop=4000).grids.view(4000, grid.block, 9)[:, 2]
    assert (third.mean(0) - 0.5).abs().max() < 5 * (0.25 / 4000) ** 0.5
    pairs = third.T @ third / 4000
    of_two_cells = pairs[~torch.eye(9, dtype=torch.bool)]
    assert (of_two_cells - 0.25).abs().max() < 5 * (0.1875 / 4000) ** 0.5


def test_cells_are_kept_with_the_probability_that_is_given():
    grid = rx.Grid(cells=3, keep=0.3)
    kept = basis_of(grid).draw_blocks(seed=1, start=0, stop=200).grids
    assert abs(kept.mean().item() - 0.3) < 5 * (0.21 / kept.numel()) ** 0.5


@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
@pytest.mark.parametrize("keep", [0.5, 0.4])
def test_the_mean_map_is_exact_where_similarity_is_linear_in_the_mask(monkeypatch, normalise, keep):
    """It equals E[s·M] by enumeration of every grid and every shift."""
    monkeypatch.setattr(fast_estimator, "RIDGE", 0.0)
    grid = rx.Grid(cells=2, keep=keep)
    basis = basis_of(grid, 9, 11)
    effects = torch.tensor([[0.3, -0.1], [0.2, 0.5]], dtype=torch.float64)

    def similarity(draws):
        """Return a linear function of the masks' means over quarters of the image, of 9×11 pixels."""
        masks = basis.masks(draws, torch.float64)
        means = [[masks[:, y, x].mean((1, 2)) for x in (slice(6), slice(5, 11))] for y in (slice(5), slice(4, 9))]
        return 0.4 + sum(effects[y, x] * means[y][x] for y in range(2) for x in range(2))

    product = torch.zeros(9, 11, dtype=torch.float64)
    for cells in itertools.product((0.0, 1.0), repeat=4):
        cell_grid = torch.tensor(cells, dtype=torch.float64).view(1, 2, 2)
        probability = keep ** sum(cells) * (1 - keep) ** (4 - sum(cells))
        for down, right in itertools.product(range(2), range(2)):
            draws = Draws(cell_grid, torch.tensor([[down, right]]))
            product += probability / 4 * similarity(draws) * basis.masks(draws, torch.float64)[0]
    expected = product / keep if normalise == "mask_sum" else product

    draws = basis.draw_blocks(seed=2, start=0, stop=1)
    beta, errors = regression(basis, MeasuredMasks(draws, similarity(draws)))
    assert errors.abs().max() < 1e-12
    (mu,) = mean_maps(basis, beta[None], rx.Relax(grid=grid, normalise=normalise))
    torch.testing.assert_close(mu, expected, atol=1e-12, rtol=0)


def test_resamples_are_drawn_with_replacement():
    counts = resample(50, 1000, seed=3)
    assert (counts.sum(1) == 1000).all()
    assert abs(counts.mean().item() - 20) < 1e-9
    assert abs(counts.var(0).mean().item() - 1000 * 0.02 * 0.98) < 1
    assert not torch.equal(counts, resample(50, 1000, seed=4))


@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
def test_maps_of_counted_masks_equal_those_of_repeated_masks(normalise):
    grid = rx.Grid(cells=3)
    basis = basis_of(grid, 8, 8)
    draws = basis.draw_blocks(seed=2, start=0, stop=1)
    s = torch.rand(grid.block, dtype=torch.float64)
    counts = resample(grid.block, 40, seed=1)[:2]
    maps = relax_maps(basis, MeasuredMasks(draws, s), counts, rx.Relax(normalise=normalise))
    masks = basis.masks(draws, torch.float64)
    for count, values in zip(counts.long(), maps, strict=True):
        similarities, repeated = s.repeat_interleave(count).tolist(), masks.repeat_interleave(count, 0).numpy()
        expected = paper.relax_importance(similarities, repeated, normalise)
        np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("side", [2, 5, 24])
def test_totals_at_some_pixels_equal_those_at_all_pixels(side):
    basis = basis_of(rx.Grid(cells=3))
    draws = basis.draw_blocks(seed=2, start=0, stop=1)
    weights = torch.randn(len(draws.grids), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pixels = basis.thinned(side)
    masks = basis.masks(draws, torch.float64)
    torch.testing.assert_close(basis.totals(draws, weights), torch.einsum("nk,nij->kij", weights, masks))
    torch.testing.assert_close(basis.at(*pixels).totals(draws, weights), basis.totals(draws, weights)[:, *pixels])


@pytest.mark.slow
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
def test_it_is_more_accurate_than_ten_repeats_and_states_its_error(options, grid):
    """The true p is approximated by 150 independent repeats."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(90, 12), nn.ReLU(), nn.Linear(12, 6)).double()
    encoder = rx.load_encoder(network)
    pixels = torch.rand(3, 24, 20, generator=torch.Generator().manual_seed(1)) - 0.5
    pixels[:, 4:12, 10:18] += 2
    image = rx.load_image(pixels, encoder)
    base = rx.Relax(masks=300, grid=grid, chunk=300)
    truth = rx.Repeat(estimator="exact", base=base, repeats=150, **options)(encoder, image, seed=1234)
    errors = {"fast": [], "ten": [], "stated": []}
    for seed in range(16):
        fast = rx.Repeat(base=base, **options)(encoder, image, seed=seed)
        ten = rx.Repeat(estimator="exact", base=base, repeats=10, **options)(encoder, image, seed=seed)
        errors["fast"].append((fast.importance - truth.importance).square().mean().item())
        errors["ten"].append((ten.importance - truth.importance).square().mean().item())
        errors["stated"].append(fast.provenance["budget"]["error"] ** 2)
        assert fast.provenance["encoder_calls"] == fast.provenance["budget"]["masks"] + 1 < 3000
    rms = {name: np.mean(values) ** 0.5 for name, values in errors.items()}
    assert rms["fast"] < rms["ten"]
    assert 0.75 < rms["stated"] / rms["fast"] < 1.25


def test_the_tally_cuts_and_counts_the_resampled_maps_one_by_one():
    base = rx.Relax(masks=50)
    basis = basis_of(base.grid)
    draws = basis.draw_blocks(seed=2, start=0, stop=1)
    measured = MeasuredMasks(draws, torch.rand(128, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    estimator = FastEstimator(base=base, threshold="mean", votes="weighted", repeats=10, budget=None, tolerance=None)
    counts = resample(128, 50, seed=9)
    tallied = estimator.tally(basis, measured, regression(basis, measured), counts)
    (mean,) = mean_maps(basis, regression(basis, measured).beta[None], base)
    every = torch.ones(1, 128, dtype=torch.float64)
    noise = relax_maps(basis, measured, counts, base) - relax_maps(basis, measured, every, base)
    maps = torch.cat((mean + noise, mean - noise)).numpy()
    p, _, share = paper.repeat(maps, np.mean)
    np.testing.assert_allclose(tallied[0].numpy(), p, atol=1e-12)
    np.testing.assert_allclose(tallied[1].numpy(), share, atol=1e-12)


@pytest.mark.slow
def test_the_stated_error_equals_its_definition_in_slow_loops():
    """β is moved by the signed errors of its pairs of masks, one move at a time, and the maps vote again."""
    base = rx.Relax(masks=50, grid=rx.Grid(cells=3))
    basis = basis_of(base.grid)
    draws = basis.draw_blocks(seed=2, start=0, stop=3)
    s = torch.rand(96, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    counts = resample(96, 50, seed=9)
    estimator = FastEstimator(base=base, threshold="mean", votes="weighted", repeats=7, budget=None, tolerance=None)
    measured = MeasuredMasks(draws, s)
    error, target = estimator.judge(basis, measured, regression(basis, measured), counts, seed=5).tolist()

    masks = basis.masks(draws, torch.float64)
    means = F.adaptive_avg_pool2d(masks[:, None], 3)[:, 0].flatten(1).numpy() - 0.5
    x = np.concatenate((np.ones((96, 1)), means), 1)
    inverse = np.linalg.inv(x.T @ x + np.diag([0] + [fast_estimator.RIDGE * 96 / 4] * 9))
    beta = inverse @ x.T @ s.numpy()
    residual = s.numpy() - x @ beta
    free = 1 - np.mean([(x[i] - x[i + 1]) @ inverse @ (x[i] - x[i + 1]) / 2 for i in range(0, 96, 2)])
    errors = [inverse @ (x[i] * residual[i] + x[i + 1] * residual[i + 1]) / free**0.5 for i in range(0, 96, 2)]
    signs = np.where(uniforms(fold(5, "signs"), start=0, stop=fast_estimator.MOVES, width=48) < 0.5, 1, -1)
    every = torch.ones(1, 96, dtype=torch.float64)
    noise = relax_maps(basis, measured, counts, base) - relax_maps(basis, measured, every, base)

    def votes_with(beta):
        (mean,) = mean_maps(basis, torch.from_numpy(beta)[None], base)
        return np.stack([paper.repeat((mean + sign * n).numpy()[None], np.mean)[0] for sign in (1, -1) for n in noise])

    votes = votes_with(beta)
    moves = [votes_with(beta + sum(e * z for e, z in zip(errors, row, strict=True))).mean(0) for row in signs]
    pairs = (votes[:100] + votes[100:]) / 2
    expected = np.mean([(p - votes.mean(0)) ** 2 for p in moves]) + pairs.var(0, ddof=1).mean() / 100
    assert error == pytest.approx(expected**0.5, rel=1e-9)
    assert target == pytest.approx((votes.var(0, ddof=1).mean() / 7) ** 0.5, rel=1e-9)


@pytest.mark.parametrize(("budget", "masks"), [(300, 384), (384, 384), (1, 256)])
def test_a_given_budget_is_rounded_up_to_whole_blocks_and_the_provenance_says_so(encoder, image, budget, masks):
    method = rx.Repeat(base=rx.Relax(masks=100), budget=budget)
    provenance = method(encoder, image, seed=0).provenance
    assert provenance["budget"]["masks"] == masks
    assert provenance["budget"].get("asked") == (None if budget == masks else budget)
    assert provenance["budget"]["stopped"] == "fixed"
    assert provenance["encoder_calls"] == method.calls == masks + 1


def test_the_caption_says_that_a_budget_was_rounded_up(encoder, image):
    text = caption(rx.Repeat(base=rx.Relax(masks=100), budget=300)(encoder, image, seed=0))
    assert "300" in text
    assert "384" in text
    assert "300" not in caption(rx.Repeat(base=rx.Relax(masks=100), budget=384)(encoder, image, seed=0))


def test_an_automatic_budget_stops_at_the_tolerance_or_at_its_ceiling(encoder, image, monkeypatch):
    base = rx.Relax(masks=100)
    loose = rx.Repeat(base=base, tolerance=0.5)(encoder, image, seed=0).provenance["budget"]
    assert (loose["masks"], loose["stopped"]) == (256, "accurate enough")
    assert "asked" not in loose
    monkeypatch.setattr(fast_estimator, "BLOCKS", (2, 4))
    strict = rx.Repeat(base=base, tolerance=1e-6)(encoder, image, seed=0).provenance["budget"]
    assert (strict["masks"], strict["stopped"]) == (512, "at its ceiling")
    assert strict["error"] > 1e-6


def test_the_same_seed_gives_the_same_bits_and_the_batch_size_changes_nothing(encoder, image):
    first, again = (rx.Repeat(base=rx.Relax(masks=100))(encoder, image, seed=3) for _ in range(2))
    assert torch.equal(first.importance, again.importance)
    in_chunks = rx.Repeat(base=rx.Relax(masks=100, chunk=7))(encoder, image, seed=3)
    torch.testing.assert_close(in_chunks.importance, first.importance, atol=1e-6, rtol=0)


def test_another_base_is_run_exactly_with_a_warning(encoder, image):
    random_base = FunctionBase(lambda *_, seed: torch.rand(24, 20, generator=torch.Generator().manual_seed(seed >> 1)))
    with pytest.warns(UserWarning, match="exact repeats are used"):
        explanation = rx.Repeat(base=random_base, repeats=3)(encoder, image, seed=0)
    expected = rx.Repeat(estimator="exact", base=random_base, repeats=3)(encoder, image, seed=0)
    assert torch.equal(explanation.importance, expected.importance)
    assert "budget" not in explanation.provenance


def test_too_few_masks_to_resample_are_run_exactly_with_a_warning(encoder, image):
    with pytest.warns(UserWarning, match="10 masks or more"):
        explanation = rx.Repeat(base=rx.Relax(masks=3), repeats=4)(encoder, image, seed=0)
    assert explanation.provenance["encoder_calls"] == 13


def test_masks_and_resamples_are_drawn_from_different_seeds(encoder, image, monkeypatch):
    seeds = []

    def recorded(seed, **where):
        seeds.append(seed)
        return uniforms(seed, **where)

    monkeypatch.setattr("repeat_xai.engine.masks.uniforms", recorded)
    rx.Repeat(base=rx.Relax(masks=50), budget=256)(encoder, image, seed=0)
    of_masks = set(seeds)
    seeds.clear()
    monkeypatch.setattr(fast_estimator, "uniforms", recorded)
    rx.Repeat(base=rx.Relax(masks=50), budget=256)(encoder, image, seed=0)
    assert len(of_masks) == 1
    assert len(set(seeds) - of_masks) == 2


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"tolerance": 0.0}, {"tolerance": float("nan")}, {"tolerance": float("inf")}]
)
def test_a_budget_or_tolerance_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        rx.Repeat(**wrong)
