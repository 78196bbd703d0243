"""Our kernels equal those of scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise

import repeat_xai as rx

CASES = [
    (rx.Cosine(), pairwise.cosine_similarity, {}),
    (rx.Linear(), pairwise.linear_kernel, {}),
    (rx.Polynomial(), pairwise.polynomial_kernel, {}),
    (
        rx.Polynomial(degree=2, gamma=0.3, offset=0.5),
        pairwise.polynomial_kernel,
        {"degree": 2, "gamma": 0.3, "coef0": 0.5},
    ),
    (rx.Rbf(), pairwise.rbf_kernel, {}),
    (rx.Rbf(gamma=0.7), pairwise.rbf_kernel, {"gamma": 0.7}),
]


@pytest.mark.parametrize(("ours", "theirs", "options"), CASES)
def test_a_kernel_equals_that_of_scikit_learn(ours, theirs, options):
    code, codes = torch.randn(6, dtype=torch.float64), torch.randn(9, 6, dtype=torch.float64)
    expected = theirs(code[None].numpy(), codes.numpy(), **options)[0]
    np.testing.assert_allclose(ours(code, codes).numpy(), expected, rtol=1e-12)


def test_the_cosine_of_tiny_codes_is_exact():
    code = torch.tensor([3e-9, 4e-9], dtype=torch.float64)
    torch.testing.assert_close(rx.Cosine()(code, code[None]), torch.ones(1, dtype=torch.float64))


def test_the_cosine_with_a_zero_code_is_zero():
    assert rx.Cosine()(torch.ones(3), torch.zeros(2, 3)).tolist() == [0, 0]


@pytest.mark.parametrize("make", [lambda: rx.Rbf(gamma=0.0), lambda: rx.Polynomial(offset=-1.0)])
def test_parameters_that_make_no_kernel_are_refused(make):
    with pytest.raises(rx.RepeatError, match="is no kernel"):
        make()
