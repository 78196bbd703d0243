"""The effects of pairs of parts and their standard errors equal their definitions, and the errors are true."""

import numpy as np
import pytest
import torch

import repeat_xai as rx
from repeat_xai.engine.kernels import KERNELS
from repeat_xai.engine.masks import Basis
from repeat_xai.errors import EncoderError
from repeat_xai.methods import fast_estimator
from repeat_xai.methods.correspondence import correspondence, pair_similarities
from repeat_xai.methods.fast_estimator import regressors

CPU = torch.device("cpu")


def drawn(grid, side=18, blocks=2, seed=0):
    """Return a basis, and masks of A and of B."""
    basis = Basis.of(grid, side, side, CPU)
    return basis, *(basis.draw_blocks(seed=2 * seed + image, start=0, stop=blocks) for image in range(2))


def means(basis, draws):
    return basis.squares.masks(draws, torch.float64).flatten(1)


def random_features(rows, seed, dim=6):
    """Return a smooth function of rows that is neither linear nor even."""
    first, second = (
        torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        for shape in ((rows.shape[1], 20), (20, dim))
    )
    return torch.relu(rows @ first) @ second


@pytest.mark.parametrize("kernel", KERNELS)
def test_similarities_of_pairs_equal_the_kernel_one_code_at_a_time(kernel):
    a, b = (torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in (5, 7))
    a[2] = 0
    similarities = pair_similarities(KERNELS[kernel](), a, b)
    for p, q in np.ndindex(5, 7):
        assert similarities[p, q].item() == pytest.approx(KERNELS[kernel]()(b[q], a[p : p + 1]).item(), abs=1e-12)


def test_similarities_that_are_not_finite_are_refused():
    codes = torch.full((2, 2), 1e200, dtype=torch.float64)
    with pytest.raises(EncoderError, match="NaN or infinite"):
        pair_similarities(rx.Linear(), codes, codes)


@pytest.mark.parametrize("grid", [rx.Grid(cells=3), rx.Grid(cells=3, keep=0.4), rx.Grid(cells=2, style="rise")])
def test_bilinear_similarities_give_their_own_coefficients_without_error(monkeypatch, grid):
    monkeypatch.setattr(fast_estimator, "RIDGE", 0.0)
    basis, a, b = drawn(grid)
    effects = torch.randn(grid.cells**2, grid.cells**2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    of_a, of_b = means(basis, a), means(basis, b)
    similarities = 0.7 + of_a.sum(1)[:, None] - 2 * of_b[:, 1] + of_a @ effects @ of_b.T
    effect, error = correspondence(basis, a, b, similarities)
    torch.testing.assert_close(effect, effects, atol=1e-9, rtol=0)
    assert error.max() < 1e-9


def test_effects_equal_those_of_one_regression_on_all_products_of_cells(monkeypatch):
    monkeypatch.setattr(fast_estimator, "RIDGE", 0.0)
    basis, a, b = drawn(rx.Grid(cells=2))
    of_a, of_b = means(basis, a), means(basis, b)
    similarities = random_features(of_a, 1) @ random_features(of_b, 2).T
    designs = [np.column_stack((np.ones(len(rows)), rows - 0.5)) for rows in (of_a.numpy(), of_b.numpy())]
    everything, *_ = np.linalg.lstsq(np.kron(*designs), similarities.numpy().ravel(), rcond=None)
    expected = everything.reshape(5, 5)[1:, 1:]
    np.testing.assert_allclose(correspondence(basis, a, b, similarities)[0].numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("keep", [0.5, 0.4])
def test_errors_equal_their_definition_in_slow_loops(keep):
    """Contributions of pairs of masks, or of single masks where these are independent, are added one by one."""
    basis, a, b = drawn(rx.Grid(cells=2, keep=keep))
    u, v = random_features(means(basis, a), 1), random_features(means(basis, b), 2)
    size = 2 if keep == 0.5 else 1

    def contributions(draws, features):
        """Return the coefficients of the features, and each cluster's contribution to their error."""
        design, solver, free = regressors(basis, draws)
        residual = features - design @ (solver @ features)
        parts = [
            sum(solver[1:, n, None] * residual[n] for n in range(start, start + size))
            for start in range(0, len(residual), size)
        ]
        return (solver @ features)[1:], torch.stack(parts, 1) / free.sqrt()

    alpha, errors_a = contributions(a, u)
    gamma, errors_b = contributions(b, v)
    _, error = correspondence(basis, a, b, u @ v.T)
    for c, d in np.ndindex(4, 4):
        first = sum(float(e @ gamma[d]) ** 2 for e in errors_a[c])
        second = sum(float(e @ alpha[c]) ** 2 for e in errors_b[d])
        both = sum(float(e @ f) ** 2 for e in errors_a[c] for f in errors_b[d])
        expected = both + max(first - both, 0) + max(second - both, 0)
        assert error[c, d].item() ** 2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", [rx.Cosine(), rx.Rbf()])
def test_standard_errors_are_those_of_many_draws(kernel):
    """Over 300 draws of masks, the root mean square of the stated errors is the standard deviation of the effects."""
    grid, effects, errors = rx.Grid(cells=3), [], []
    for seed in range(300):
        basis, a, b = drawn(grid, seed=seed, blocks=4)
        codes = (random_features(means(basis, draws) ** 2, 1 + i) for i, draws in enumerate((a, b)))
        effect, error = correspondence(basis, a, b, pair_similarities(kernel, *codes))
        effects.append(effect)
        errors.append(error)
    true, stated = torch.stack(effects).std(0), torch.stack(errors).square().mean(0).sqrt()
    ratios = stated / true
    assert 0.95 < (stated.square().mean() / true.square().mean()).sqrt() < 1.35
    assert ratios.min() > 0.8, "no error is stated far too small"
