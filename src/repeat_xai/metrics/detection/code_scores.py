"""What reviewers ask to see beside it: how unusual an image's code is among others, without any explanation.

    nearest        distance to the k-th nearest code (Sun et al. 2022), codes of length one
    mahalanobis    √((h − μ)ᵀ Σ⁻¹ (h − μ)), Σ shrunk after Ledoit and Wolf (Lee et al. 2018, without classes)
    density        −ln of a Gaussian mixture's density of the codes' first principal components

Each takes the codes to judge and those of a reference that is known; without a reference, the codes judge each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from repeat_xai.errors import ConfigurationError

if TYPE_CHECKING:
    from jaxtyping import Float

    Codes = Float[Tensor, "images dim"]
    Scores = Float[Tensor, " images"]

NEIGHBOURS, COMPONENTS, KINDS = 10, 16, 2


def nearest(codes: Codes, reference: Codes | None = None) -> Scores:
    """Distance to the tenth nearest."""
    from sklearn.neighbors import NearestNeighbors

    rows, among = _rows(codes, reference)
    rows, among = (part / np.linalg.norm(part, axis=1, keepdims=True).clip(1e-300) for part in (rows, among))
    itself = int(reference is None)
    k = min(NEIGHBOURS, len(among) - itself)
    found, _ = NearestNeighbors(n_neighbors=k + itself).fit(among).kneighbors(rows)
    return torch.from_numpy(found[:, -1])


def mahalanobis(codes: Codes, reference: Codes | None = None) -> Scores:
    """Distance from the mean, in units of how codes vary."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    rows, among = _rows(codes, reference)
    centre = among.mean(0)
    shrinkage = float(ledoit_wolf_shrinkage(among - centre, assume_centered=True))
    # Σ = (1 − a)·S + a·μ·I has S's axes, no more than there are codes, and is round along all others.
    _, singular, axes = np.linalg.svd(among - centre, full_matrices=False)
    variances = singular**2 / len(among)
    floor = max(shrinkage * variances.sum() / among.shape[1], np.finfo(float).tiny)
    away = rows - centre
    along = away @ axes.T
    across = (away**2).sum(1) - (along**2).sum(1)
    squares = (along**2 / ((1 - shrinkage) * variances + floor)).sum(1) + across.clip(0) / floor
    return torch.from_numpy(np.sqrt(squares))


def density(codes: Codes, reference: Codes | None = None) -> Scores:
    """How unlikely a code is."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    rows, among = _rows(codes, reference)
    few = max(1, min(COMPONENTS, len(among) // 4, among.shape[1]))
    axes = PCA(few, svd_solver="full").fit(among)
    kinds = GaussianMixture(KINDS, covariance_type="diag", n_init=5, random_state=0).fit(axes.transform(among))
    return torch.from_numpy(-kinds.score_samples(axes.transform(rows)))


BASELINES: dict[str, Callable[..., Tensor]] = {f.__name__: f for f in (nearest, mahalanobis, density)}


def _rows(codes: Codes, reference: Codes | None) -> tuple[np.ndarray, np.ndarray]:
    rows = codes.detach().double().cpu().numpy()
    among = rows if reference is None else reference.detach().double().cpu().numpy()
    if len(among) < 4 or not len(rows) or rows.shape[1] != among.shape[1]:
        raise ConfigurationError(f"{list(rows.shape)} codes cannot be judged among {list(among.shape)}; give 4 or more")
    if not (np.isfinite(rows).all() and np.isfinite(among).all()):
        raise ConfigurationError("a code has NaN or infinite values")
    return rows, among
