"""Find out which part of one image goes with which part of another, from similarities of masked copies of both.

    S_pq = κ(f(A ⊙ m_p), f(B ⊙ m'_q))            β = G_A⁺ S (G_B⁺)ᵀ
    Var β = V_A + V_B + V_AB

G_A holds for each mask of A its means over the squares (cells) of the image, less the share q that is kept, with a
constant before them; G_B does so for B. The constants centre S by rows and by columns. β_cd is the *effect* of the pair
(c, d): by how much more showing cell c of A raises the similarity when cell d of B is shown than when it is hidden.

Derivation. A kernel is an inner product, S_pq = ⟨u_p, v_q⟩, of features u of masked copies of A and v of those of B.
The masks of A are drawn independently of those of B, so the regression on all products of a cell of A and a cell of B
factorises: β_cd = ⟨α_c, γ_d⟩ with α = G_A⁺ u and γ = G_B⁺ v, two regressions of features on masks. Their errors δα and
δγ are independent of each other, and so the error of β_cd has three uncorrelated parts:

    ⟨δα_c, γ_d⟩ + ⟨α_c, δγ_d⟩ + ⟨δα_c, δγ_d⟩            of variances V_A, V_B and V_AB.

As in the fast estimator, each pair of masks j (a mask and its complement) contributes e_j = G⁺_cj ε_j to δα_c, where
ε_j is the difference of the two residuals, because all effects of an even number of cells cancel in it. Inner products
of these contributions need no features, only S: with R_A and R_B the residuals of a regression on the masks of A and B,

    Σ_j ⟨e_j, γ_d⟩²    from  R_A S (G_B⁺)ᵀ     estimates V_A + V_AB,
    Σ_k ⟨α_c, e_k⟩²    from  G_A⁺ S R_Bᵀ       estimates V_B + V_AB,
    Σ_jk ⟨e_j, e_k⟩²   from  R_A S R_Bᵀ        estimates V_AB.

So V_A + V_B + V_AB is the sum of the first two less the third; no part is taken below zero. Each residual is divided by
the share of its variance that the regression leaves. Within a block, masks are an orthogonal array, and the residuals
that depend on few cells cancel better than chance would have it: then the standard error is too large, never too small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from repeat_xai.engine.kernels import Cosine, Kernel
from repeat_xai.engine.masks import Basis, Draws
from repeat_xai.errors import EncoderError
from repeat_xai.methods.fast_estimator import Regressors, regressors

if TYPE_CHECKING:
    from jaxtyping import Float


def pair_similarities(similarity: Kernel, a: Float[Tensor, "p dim"], b: Float[Tensor, "q dim"]) -> Float[Tensor, "p q"]:
    """Return S: the kernel of every code of masked copies of A with every code of masked copies of B."""
    if isinstance(similarity, Cosine):  # as the kernel has it, but with one matrix product
        a, b = (codes / codes.norm(dim=1, keepdim=True).clamp_min(1e-30) for codes in (a, b))
        similarities = a @ b.T
    else:
        similarities = torch.stack([similarity(code, b).double() for code in a])
    if not similarities.isfinite().all():
        raise EncoderError("the similarity gives NaN or infinite numbers")
    return similarities


def correspondence(
    basis: Basis, a: Draws, b: Draws, similarities: Float[Tensor, "p q"]
) -> tuple[Float[Tensor, "cells2 cells2"], Float[Tensor, "cells2 cells2"]]:
    """Return the effect β of each pair of a cell of A and a cell of B, and its standard error."""
    of_a, of_b = regressors(basis, a), regressors(basis, b)
    solver_a, solver_b = of_a.solver[1:], of_b.solver[1:]
    weights_a, weights_b = (_by_pair(basis, solver.T).T.square() for solver in (solver_a, solver_b))
    residual_a, residual_b = _residual(of_a, similarities), _residual(of_b, similarities.T)
    residual = _by_pair(basis, _by_pair(basis, _residual(of_b, residual_a.T)).T)

    first = weights_a @ _by_pair(basis, residual_a @ solver_b.T).square() / of_a.free
    second = (weights_b @ _by_pair(basis, residual_b @ solver_a.T).square() / of_b.free).T
    both = weights_a @ residual.square() @ weights_b.T / (of_a.free * of_b.free)
    variance = both + (first - both).clamp_min(0) + (second - both).clamp_min(0)
    return solver_a @ similarities @ solver_b.T, variance.sqrt()


def _residual(fit: Regressors, values: Float[Tensor, "masks columns"]) -> Float[Tensor, "masks columns"]:
    """Return what is left of each column after its regression on the masks."""
    return values - fit.design @ (fit.solver @ values)


def _by_pair(basis: Basis, values: Float[Tensor, "masks columns"]) -> Float[Tensor, "clusters columns"]:
    """Return the differences within pairs of masks, over √2; where masks are no pairs, return the values as they are.

    Weights have opposite signs within a pair, so a weight times a difference is the sum over the pair.
    """
    if basis.grid.keep != 0.5:
        return values
    return (values[0::2] - values[1::2]) / 2**0.5
