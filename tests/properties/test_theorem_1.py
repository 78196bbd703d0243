"""Theorem 1: REPEAT's importance is a conic sum of inner products in the kernel's feature space.

    p = (1/K) Σ_k γ_k ⟨φ(h), Σ_n φ(h̄_n) M(n) / N⟩        γ_k = I(k) / max R(k) ≥ 0

The feature map φ of each kernel is written out: by hand where it is finite, as a long Taylor series for the RBF.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import repeat_xai as rx
from repeat_xai.engine.masks import Basis
from repeat_xai.methods.thresholds import THRESHOLDS
from repeat_xai.seeds import fold

GAMMA, OFFSET = 0.4, 0.5


def linear(h):
    """Return φ(h) = h."""
    return h


def cosine(h):
    """Return φ(h) = h / ‖h‖."""
    return h / h.norm(dim=-1, keepdim=True)


def polynomial(h):
    """Return φ(h) from (γ⟨x, y⟩ + c)² = Σ_ij γ²x_i x_j y_i y_j + Σ_i 2γc x_i y_i + c²."""
    pairs = (h[..., :, None] * h[..., None, :]).flatten(-2) * GAMMA
    return torch.cat((pairs, h * math.sqrt(2 * GAMMA * OFFSET), torch.full_like(h[..., :1], OFFSET)), -1)


def rbf(h, order=30):
    """Return φ(h), to total degree `order`, from exp(−γ‖x − y‖²) = e^(−γ‖x‖²) e^(−γ‖y‖²) Σ_a (2γ)^|a| x^a y^a / a!."""
    degrees = [a for a in itertools.product(range(order + 1), repeat=h.shape[-1]) if sum(a) <= order]
    powers = torch.stack(
        [
            math.sqrt((2 * GAMMA) ** sum(a) / math.prod(map(math.factorial, a))) * (h ** torch.tensor(a)).prod(-1)
            for a in degrees
        ],
        -1,
    )
    return torch.exp(-GAMMA * h.square().sum(-1, keepdim=True)) * powers


KERNELS = {
    "linear": (rx.Linear(), linear),
    "cosine": (rx.Cosine(), cosine),
    "polynomial": (rx.Polynomial(degree=2, gamma=GAMMA, offset=OFFSET), polynomial),
    "rbf": (rx.Rbf(gamma=GAMMA), rbf),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), threshold=st.sampled_from(["mean", "otsu"]))
def test_importance_is_a_conic_sum_of_inner_products(name, seed, threshold):
    kernel, feature_map = KERNELS[name]
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(9, 2), nn.Sigmoid()).double()
    for parameter in network.parameters():
        parameter.data.normal_(generator=generator)
    encoder = rx.load_encoder(network.eval())
    image = rx.load_image(torch.randn(1, 16, 16, generator=generator), encoder)
    relax = rx.Relax(masks=25, similarity=kernel, normalise="count")
    repeats = 3

    phi = feature_map(encoder(image.pixels[None])[0])
    basis = Basis.of(relax.grid, 16, 16, encoder.device)
    expected = torch.zeros(16, 16, dtype=torch.float64)
    for k in range(repeats):
        row = fold(fold(seed, "repeat", k), image.photo.digest)
        masks = basis.masks(basis.draw(seed=row, start=0, stop=25), torch.float64)
        phis = feature_map(encoder(image.pixels.double() * masks[:, None]))
        mean_code = torch.einsum("nd,nij->ijd", phis, masks) / 25
        score = mean_code @ phi
        indicator = score >= THRESHOLDS[threshold](score[None])[0]
        gamma = indicator / score.max()
        assert (gamma >= 0).all()
        expected += gamma * score / repeats

    method = rx.Repeat(estimator="exact", base=relax, repeats=repeats, threshold=threshold)
    importance = method(encoder, image, seed=seed).importance
    torch.testing.assert_close(importance.double(), expected, atol=1e-6, rtol=0)
