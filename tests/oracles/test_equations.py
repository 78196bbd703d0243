"""RELAX and REPEAT equal the paper's equations written out as slow loops."""

import numpy as np
import pytest
import torch
from oracles import paper
from skimage import filters

import repeat_xai as rx
from repeat_xai.engine.masks import Basis
from repeat_xai.seeds import fold

THRESHOLDS = {
    "mean": np.mean,
    "otsu": filters.threshold_otsu,
    "triangle": filters.threshold_triangle,
    "li": filters.threshold_li,
}
"""Thresholds of numpy and scikit-image, by our names."""


def masked_similarities(encoder, image, grid, *, seed, masks):
    """Return the similarity of each masked copy, from one encoder call each, and the masks."""
    height, width = image.pixels.shape[1:]
    basis = Basis.of(grid, height, width, torch.device("cpu"))
    draws = basis.draw(seed=fold(seed, image.photo.digest), start=0, stop=masks)
    stack = basis.masks(draws, torch.float64)
    pixels = image.pixels.double()
    whole = encoder(pixels[None])[0].tolist()
    return [paper.cosine(whole, encoder((pixels * mask)[None])[0].tolist()) for mask in stack], stack.numpy()


@pytest.mark.parametrize("style", ["relax", "rise"])
@pytest.mark.parametrize("normalise", ["mask_sum", "count"])
@pytest.mark.parametrize("normalise_uncertainty", ["mask_sum", "count", "sum"])
def test_relax_equals_its_equations(encoder, image, style, normalise, normalise_uncertainty):
    grid = rx.Grid(cells=5, keep=0.4, style=style)
    similarities, masks = masked_similarities(encoder, image, grid, seed=3, masks=40)
    importance = paper.relax_importance(similarities, masks, normalise)
    uncertainty = paper.relax_uncertainty(similarities, masks, importance, normalise_uncertainty)

    relax = rx.Relax(masks=40, grid=grid, normalise=normalise, normalise_uncertainty=normalise_uncertainty)
    explanation = relax(encoder, image, seed=3)

    np.testing.assert_allclose(relax.importance(encoder, image, seed=3).numpy(), importance, rtol=1e-10)
    np.testing.assert_allclose(explanation.importance.numpy(), importance, rtol=1e-6)
    np.testing.assert_allclose(explanation.uncertainty.numpy(), uncertainty, rtol=1e-6, atol=1e-12)
    assert explanation.vote_share is None


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("votes", ["weighted", "binary"])
def test_repeat_equals_its_equations(encoder, image, threshold, votes):
    grid = rx.Grid()
    maps = []
    for k in range(4):
        similarities, masks = masked_similarities(encoder, image, grid, seed=fold(7, "repeat", k), masks=30)
        maps.append(paper.relax_importance(similarities, masks))
    p, uncertainty, share = paper.repeat(np.stack(maps), THRESHOLDS[threshold], votes)

    method = rx.Repeat(estimator="exact", base=rx.Relax(masks=30), repeats=4, threshold=threshold, votes=votes)
    explanation = method(encoder, image, seed=7)

    np.testing.assert_allclose(explanation.importance.numpy(), p, atol=1e-6)
    np.testing.assert_allclose(explanation.uncertainty.numpy(), uncertainty, atol=1e-6)
    np.testing.assert_allclose(explanation.vote_share.numpy(), share, atol=1e-6)
    assert 0.05 < share.mean() < 0.95
