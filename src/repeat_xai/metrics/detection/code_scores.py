"""Scores of how unusual an image's code is among others, without any explanation: what uncertainty is compared with.

    nearest        distance to the k-th nearest code (Sun et al. 2022), k = 10, codes scaled to length one
    mahalanobis    √((h − μ)ᵀ Σ⁻¹ (h − μ)), Σ shrunk after Ledoit and Wolf (Lee et al. 2018, without classes)
    density        −ln of the density of a Gaussian mixture of the codes' first principal components

Each takes the codes to judge and reference codes of known images; without a reference, the codes judge each other.
Higher scores are more unusual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError
from repeat_xai.metrics.metric import SetMetric

if TYPE_CHECKING:
    from jaxtyping import Float

    Codes = Float[Tensor, "images dim"]
    CodeScores = Float[Tensor, " images"]

NEIGHBOURS = 10
PRINCIPAL_COMPONENTS = 16
MIXTURE_COMPONENTS = 2
FEWEST_CODES = 4


def nearest(codes: Codes, reference: Codes | None = None) -> CodeScores:
    """Return the distance of each code to its tenth nearest one, or to the farthest if there are fewer.

    >>> import torch
    >>> nearest(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]] * 4)).item() == 2**0.5
    True
    """
    from sklearn.neighbors import NearestNeighbors

    rows, among = _arrays(codes, reference)
    rows, among = (part / np.linalg.norm(part, axis=1, keepdims=True).clip(1e-300) for part in (rows, among))
    itself = int(reference is None)  # among themselves, the nearest code to each is itself
    k = min(NEIGHBOURS, len(among) - itself)
    distances, _ = NearestNeighbors(n_neighbors=k + itself).fit(among).kneighbors(rows)
    return torch.from_numpy(distances[:, -1])


def mahalanobis(codes: Codes, reference: Codes | None = None) -> CodeScores:
    """Return the Mahalanobis distance of each code from the mean: the distance in units of how the codes vary."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    rows, among = _arrays(codes, reference)
    centre = among.mean(0)
    shrinkage = float(ledoit_wolf_shrinkage(among - centre, assume_centered=True))
    # Σ = (1 − a)·S + a·μ·I has the axes of S, of which there are no more than codes, and is round along all others.
    _, singular, axes = np.linalg.svd(among - centre, full_matrices=False)
    variances = singular**2 / len(among)
    floor = max(shrinkage * variances.sum() / among.shape[1], np.finfo(float).tiny)
    away = rows - centre
    along = away @ axes.T
    across = (away**2).sum(1) - (along**2).sum(1)
    squares = (along**2 / ((1 - shrinkage) * variances + floor)).sum(1) + across.clip(0) / floor
    return torch.from_numpy(np.sqrt(squares))


def density(codes: Codes, reference: Codes | None = None) -> CodeScores:
    """Return the negative log density of each code under a Gaussian mixture of principal components."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    rows, among = _arrays(codes, reference)
    components = max(1, min(PRINCIPAL_COMPONENTS, len(among) // 4, among.shape[1]))
    axes = PCA(components, svd_solver="full").fit(among)
    split = GaussianMixture(MIXTURE_COMPONENTS, covariance_type="diag", n_init=5, random_state=0)
    return torch.from_numpy(-split.fit(axes.transform(among)).score_samples(axes.transform(rows)))


CODE_SCORES: dict[str, Callable[..., Tensor]] = {f.__name__: f for f in (nearest, mahalanobis, density)}

NAMED = (
    SetMetric(
        name="codes",
        better="higher",
        description="out-of-distribution detection by codes alone: AUROC of " + ", ".join(CODE_SCORES),
    ),
)


def _arrays(codes: Codes, reference: Codes | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes and those of the reference, in float64 on the CPU."""
    rows = codes.detach().double().cpu().numpy()
    among = rows if reference is None else reference.detach().double().cpu().numpy()
    if len(among) < FEWEST_CODES or not len(rows) or rows.shape[1] != among.shape[1]:
        sizes = f"{list(rows.shape)} codes cannot be judged among {list(among.shape)}"
        raise ConfigurationError(f"{sizes}; give {FEWEST_CODES} or more")
    if not (np.isfinite(rows).all() and np.isfinite(among).all()):
        raise ConfigurationError("a code has NaN or infinite values")
    return rows, among
